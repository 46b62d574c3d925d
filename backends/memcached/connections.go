package memcached

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/terracecache/terrace/tier"
)

// connections are those of a client of our own. gomemcache cannot end a call, nor
// keep a connection that comes back after its Close from staying open; closing the
// connections themselves does both.
type connections struct {
	dial  dialContext
	grain time.Duration // of deadlines

	life context.Context // ends when they are closed
	end  context.CancelFunc

	mu   sync.Mutex
	live map[*connection]struct{}
}

type dialContext = func(ctx context.Context, network, address string) (net.Conn, error)

type connection struct {
	net.Conn
	all *connections

	deadline time.Time // that it has
	grain    time.Duration
}

// SetDeadline implements [net.Conn]. One that is hardly later than that which it has is left out:
// gomemcache sets one for each item.
func (c *connection) SetDeadline(t time.Time) error {
	if later := t.Sub(c.deadline); 0 <= later && later < c.grain {
		return nil
	}
	c.deadline = t
	return c.Conn.SetDeadline(t)
}

func newConnections(o Options) *connections {
	c := &connections{dial: o.DialContext, grain: o.Timeout / 32, live: make(map[*connection]struct{})}
	if c.dial == nil {
		c.dial = new(net.Dialer).DialContext
	}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// DialContext is for the client's field of that name.
func (c *connections) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return c.dialFor(ctx, network, address, func(dial func() (net.Conn, error)) (net.Conn, error) { return dial() })
}

// dialFor is DialContext of a connection that stands on what by makes of one that it has dialled.
func (c *connections) dialFor(ctx context.Context, network, address string, by func(dial func() (net.Conn, error)) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	raw, err := by(func() (net.Conn, error) { return dialGuarded(ctx, c.dial, network, address) })
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		_ = raw.Close()
		return nil, tier.ErrClosed
	}
	conn := &connection{Conn: raw, all: c, grain: c.grain}
	c.live[conn] = struct{}{}
	return conn, nil
}

// dialGuarded dials in a goroutine of its own: gomemcache has some calls dial in one of its
// own, where a panic of the user's code would end the process, and runtime.Goexit leave the
// call waiting for ever.
func dialGuarded(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), network, address string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = errors.New("DialContext ended the goroutine of its call")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("DialContext panicked: %v", p)
			}
		}()
		if conn, err = dial(ctx, network, address); conn == nil && err == nil {
			err = errors.New("DialContext returned neither a connection nor an error")
		}
	}()
	<-done
	return conn, err
}

func (c *connection) Close() error {
	c.all.mu.Lock()
	delete(c.all.live, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// Close closes the connections and ends those that are being made, and with them the
// calls that use them.
func (c *connections) Close() {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.live {
		_ = conn.Conn.Close()
	}
	clear(c.live)
}
