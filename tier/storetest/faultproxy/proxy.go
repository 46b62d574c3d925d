// Package faultproxy passes TCP connections on to a server, and can stop to do so in the
// ways that networks and servers do.
package faultproxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/rs/zerolog"
)

// Proxy passes connections on to one server. Its methods may be called at any time, also
// concurrently; each holds until the next call changes it.
type Proxy struct {
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

// New starts a proxy at addr, which is host:port, for the server at upstream. Close must
// be called.
func New(addr, upstream string) (*Proxy, error) {
	p := &Proxy{
		addr:     addr,
		upstream: upstream,
		server:   toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
		conns:    make(map[net.Conn]struct{}),
	}
	p.network.changed = make(chan struct{})
	p.links = toxiproxy.NewProxy(p.server, addr, "", upstream)
	// The toxics join the chain before there is a connection and stay: to add or
	// remove one under traffic can block for ever when an end is gone.
	for _, direction := range []stream.Direction{stream.Upstream, stream.Downstream} {
		wrapper, err := p.links.Toxics.AddToxicJson(strings.NewReader(
			`{"type": "` + faultType + `", "name": "` + direction.String() + `", "stream": "` + direction.String() + `"}`))
		if err != nil {
			return nil, fmt.Errorf("start proxy: %w", err)
		}
		toxic := wrapper.Toxic.(*fault)
		toxic.network, toxic.direction = &p.network, direction
	}
	return p, p.listen()
}

// Addr returns the proxy's host:port, for clients to dial. It never changes.
func (p *Proxy) Addr() string { return p.addr }

// Delay passes requests on at once and what the server answers d after it came.
func (p *Proxy) Delay(d time.Duration) error { return p.become(condition{delay: d}) }

// BlackHole lets nothing pass: connections stay open and new ones are accepted,
// but all is silence, as when packets are dropped. What was on its way arrives when
// the proxy is restored, as packets that are sent again do.
func (p *Proxy) BlackHole() error { return p.become(condition{hole: true}) }

// Cut closes all connections and refuses new ones.
func (p *Proxy) Cut() {
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
func (p *Proxy) Reset() { p.drop(true) }

// Restore undoes Delay, BlackHole and Cut.
func (p *Proxy) Restore() error { return p.become(condition{}) }

// become fails only where the proxy's port has been taken by another meanwhile.
func (p *Proxy) become(c condition) error {
	p.network.set(c)
	return p.listen()
}

// Close ends the proxy and all connections.
func (p *Proxy) Close() {
	p.Cut()
	p.network.set(condition{closed: true})
	p.open.Wait()
}

func (p *Proxy) listen() error {
	p.switching.Lock()
	defer p.switching.Unlock()
	if p.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return fmt.Errorf("listen on the proxy's port: %w", err)
	}
	accepted := make(chan struct{})
	p.listener, p.accepted = l, accepted
	go func() {
		defer close(accepted)
		p.accept(l)
	}()
	return nil
}

func (p *Proxy) accept(l net.Listener) {
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
func (p *Proxy) drop(reset bool) {
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

func (p *Proxy) track(conn net.Conn) *trackedConn {
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
	proxy *Proxy
}

func (c *trackedConn) Write(b []byte) (int, error) { return c.conn.Write(b) }

func (c *trackedConn) Close() error {
	c.proxy.mu.Lock()
	delete(c.proxy.conns, c.conn)
	c.proxy.mu.Unlock()
	defer c.proxy.open.Done()
	return c.conn.Close()
}
