package servers

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier/storetest/faultproxy"
)

// FaultProxy passes TCP connections on to a server, and can stop to do so in the
// ways that networks and servers do. Its methods may be called at any time, also
// concurrently; each holds until the next call changes it.
type FaultProxy struct {
	t     testing.TB
	addr  string
	proxy *faultproxy.Proxy
}

// Proxy starts a proxy for the server at upstream, on a free loopback port. It
// ends with the test.
func Proxy(t testing.TB, upstream string) *FaultProxy {
	t.Helper()
	for range portTries {
		port, err := freePort()
		if err != nil {
			t.Fatalf("start proxy: %v", err)
		}
		p := &FaultProxy{t: t, addr: net.JoinHostPort(host, strconv.Itoa(port))}
		if p.proxy, err = faultproxy.New(p.addr, upstream); err == nil {
			t.Cleanup(p.proxy.Close)
			return p
		}
	}
	t.Fatalf("start proxy: no free port in %d tries", portTries)
	return nil
}

// Addr returns the proxy's host:port, for clients to dial. It never changes.
func (p *FaultProxy) Addr() string { return p.addr }

// Delay passes requests on at once and what the server answers d after it came.
func (p *FaultProxy) Delay(d time.Duration) {
	p.t.Helper()
	p.check(p.proxy.Delay(d))
}

// BlackHole lets nothing pass: connections stay open and new ones are accepted,
// but all is silence, as when packets are dropped. What was on its way arrives when
// the proxy is restored, as packets that are sent again do.
func (p *FaultProxy) BlackHole() {
	p.t.Helper()
	p.check(p.proxy.BlackHole())
}

// Cut closes all connections and refuses new ones.
func (p *FaultProxy) Cut() { p.proxy.Cut() }

// Reset aborts all connections with a TCP reset. New ones are accepted as before.
func (p *FaultProxy) Reset() { p.proxy.Reset() }

// Restore undoes Delay, BlackHole and Cut.
func (p *FaultProxy) Restore() {
	p.t.Helper()
	p.check(p.proxy.Restore())
}

func (p *FaultProxy) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Error(err)
	}
}
