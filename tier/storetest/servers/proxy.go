package servers

import (
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/rs/zerolog"
)

// FaultProxy passes TCP connections on to a server, and can stop to do so in the
// ways that networks and servers do. Its methods may be called at any time, also
// concurrently; each holds until the next call changes it.
type FaultProxy struct {
	t        testing.TB
	addr     string
	upstream string
	server   *toxiproxy.ApiServer
	links    *toxiproxy.Proxy // holds the toxics; it never listens itself
	network  network
	open     sync.WaitGroup // directions of connections

	switching sync.Mutex
	listener  net.Listener  // nil while cut
	accepted  chan struct{} // closed when the listener's loop has ended

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// Proxy starts a proxy for the server at upstream, on a free loopback port. It
// ends with the test.
func Proxy(t testing.TB, upstream string) *FaultProxy {
	t.Helper()
	p := &FaultProxy{
		t:        t,
		upstream: upstream,
		server:   toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
		conns:    make(map[net.Conn]struct{}),
	}
	p.network.changed = make(chan struct{})
	p.links = toxiproxy.NewProxy(p.server, t.Name(), "", upstream)
	// The toxics join the chain before there is a connection and stay: to add or
	// remove one under traffic can block for ever when an end is gone.
	for _, direction := range []stream.Direction{stream.Upstream, stream.Downstream} {
		wrapper, err := p.links.Toxics.AddToxicJson(strings.NewReader(
			`{"type": "` + faultType + `", "name": "` + direction.String() + `", "stream": "` + direction.String() + `"}`))
		if err != nil {
			t.Fatalf("start proxy: %v", err)
		}
		toxic := wrapper.Toxic.(*fault)
		toxic.network, toxic.direction = &p.network, direction
	}
	t.Cleanup(p.close)
	for range portTries {
		port, err := freePort()
		if err != nil {
			t.Fatalf("start proxy: %v", err)
		}
		p.addr = net.JoinHostPort(host, strconv.Itoa(port))
		if p.listen() == nil {
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
	p.become(condition{delay: d})
}

// BlackHole lets nothing pass: connections stay open and new ones are accepted,
// but all is silence, as when packets are dropped. What was on its way arrives when
// the proxy is restored, as packets that are sent again do.
func (p *FaultProxy) BlackHole() {
	p.t.Helper()
	p.become(condition{hole: true})
}

// Cut closes all connections and refuses new ones.
func (p *FaultProxy) Cut() {
	p.switching.Lock()
	defer p.switching.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		<-p.accepted
		p.listener = nil
	}
	p.drop(false)
}

// Reset aborts all connections with a TCP reset. New ones are accepted as before.
func (p *FaultProxy) Reset() { p.drop(true) }

// Restore undoes Delay, BlackHole and Cut.
func (p *FaultProxy) Restore() {
	p.t.Helper()
	p.become(condition{})
}

func (p *FaultProxy) become(c condition) {
	p.t.Helper()
	p.network.set(c)
	if err := p.listen(); err != nil {
		p.t.Errorf("listen again on the proxy's port: %v", err)
	}
}

func (p *FaultProxy) close() {
	p.Cut()
	p.network.set(condition{closed: true})
	p.open.Wait()
}

func (p *FaultProxy) listen() error {
	p.switching.Lock()
	defer p.switching.Unlock()
	if p.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	accepted := make(chan struct{})
	p.listener, p.accepted = l, accepted
	go func() {
		defer close(accepted)
		p.accept(l)
	}()
	return nil
}

func (p *FaultProxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		upstream, err := net.Dial("tcp", p.upstream)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.open.Add(2)
		from, to := p.track(client), p.track(upstream)
		name := client.RemoteAddr().String()
		p.links.Toxics.StartLink(p.server, name+" up", from, to, stream.Upstream)
		p.links.Toxics.StartLink(p.server, name+" down", to, from, stream.Downstream)
	}
}

// drop closes all connections.
func (p *FaultProxy) drop(reset bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		if tcp, ok := conn.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
		delete(p.conns, conn)
	}
}

func (p *FaultProxy) track(conn net.Conn) *trackedConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn] = struct{}{}
	return &trackedConn{Reader: conn, conn: conn, proxy: p}
}

// trackedConn is one end of a connection. The direction that writes to it closes
// it, once.
type trackedConn struct {
	io.Reader
	conn  net.Conn
	proxy *FaultProxy
}

func (c *trackedConn) Write(b []byte) (int, error) { return c.conn.Write(b) }

func (c *trackedConn) Close() error {
	c.proxy.mu.Lock()
	delete(c.proxy.conns, c.conn)
	c.proxy.mu.Unlock()
	defer c.proxy.open.Done()
	return c.conn.Close()
}
