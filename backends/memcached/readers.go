package memcached

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/internal/gather"
)

// readers are the connections by which one server is asked for items. They may be used
// concurrently; the server's gate bounds how many are.
type readers struct {
	dial    func() (net.Conn, error)
	timeout time.Duration

	mu   sync.Mutex
	idle []*reader
}

func newReaders(name string, o Options, conns *connections) *readers {
	return &readers{timeout: o.Timeout, dial: func() (net.Conn, error) {
		return dialWithin(o.Timeout, name, conns.DialContext)
	}}
}

// dialWithin dials as gomemcache does, with its error where that takes too long.
func dialWithin(timeout time.Duration, name string, dial dialContext) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	addr := newSelector([]string{name}).servers[0].addr
	conn, err := dial(ctx, addr.Network(), addr.String())
	if e := net.Error(nil); errors.As(err, &e) && e.Timeout() {
		return nil, &memcache.ConnectTimeoutError{Addr: addr}
	}
	return conn, err
}

// read is that of a reader.
func (p *readers) read(keys []string, answers []gather.Answer[item]) error {
	r, err := p.take()
	if err != nil {
		return err
	}
	fine := false
	defer func() { // a connection that another has made may panic
		if !fine {
			_ = r.conn.Close()
		}
	}()
	if err := r.read(keys, answers); err != nil {
		return err
	}
	fine = true
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, r)
	return nil
}

// take returns the reader that was used last, as those that were not for long may be closed by
// the server.
func (p *readers) take() (*reader, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1]
		p.idle[n-1], p.idle = nil, p.idle[:n-1]
		p.mu.Unlock()
		return r, nil
	}
	p.mu.Unlock()
	conn, err := p.dial()
	if err != nil {
		return nil, err
	}
	return newReader(conn, p.timeout), nil
}

// drop closes the connections that nobody uses.
func (p *readers) drop() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, r := range idle {
		_ = r.conn.Close()
	}
}
