package memcached_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

func TestTLSByDialContext(t *testing.T) {
	upstream := servers.Memcached(t).Addr()
	certified := httptest.NewTLSServer(nil) // only for its certificate, for 127.0.0.1
	config := &tls.Config{Certificates: certified.TLS.Certificates}
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	certified.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer front.Close()
				back, err := net.Dial("tcp", upstream)
				if err != nil {
					return
				}
				defer back.Close()
				go func() {
					_, _ = io.Copy(back, front)
					back.Close()
				}()
				_, _ = io.Copy(front, back)
			}()
		}
	}()

	trusting := tls.Dialer{Config: &tls.Config{RootCAs: roots}}
	s := open(t, memcached.Options{Servers: []string{l.Addr().String()}, DialContext: trusting.DialContext})
	set(t, s, "key", "value", time.Minute)
	want(t, s, "key", "value")

	doubting := open(t, memcached.Options{Servers: []string{l.Addr().String()}, DialContext: new(tls.Dialer).DialContext})
	if err := doubting.Set(t.Context(), "key", nil, time.Minute); err == nil {
		t.Error("a certificate that nobody vouches for: no error")
	}
}
