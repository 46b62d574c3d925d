package redis_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// tlsFront takes TLS connections, under a certificate for 127.0.0.1, and passes them
// on to upstream.
func tlsFront(t *testing.T, upstream string) (addr string, roots *x509.CertPool) {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // only for its certificate
	config := &tls.Config{Certificates: certified.TLS.Certificates}
	roots = x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	certified.Close()

	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
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
	return l.Addr().String(), roots
}

func TestTLS(t *testing.T) {
	addr, roots := tlsFront(t, servers.Redis(t).Addr())
	s := open(t, "rediss://"+addr+"?skip_verify=true", redis.Options{})
	mustSet(t, s, "key", "value")

	trusting, err := redis.OpenClient(&goredis.UniversalOptions{
		Addrs: []string{addr}, TLSConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}, redis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer trusting.Close()
	wantValue(t, trusting, "key", "value")

	doubting := open(t, "rediss://"+addr, redis.Options{})
	if err := doubting.Set(t.Context(), "key", nil, time.Minute); err == nil {
		t.Error("a certificate that nobody vouches for: no error")
	}
}
