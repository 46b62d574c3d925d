package memcached

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/terracecache/terrace/tier"
)

// connections are those of a client of our own. gomemcache cannot end a call, nor
// keep a connection that comes back after its Close from staying open; closing the
// connections themselves does both.
type connections struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	life context.Context // ends when they are closed
	end  context.CancelFunc

	servers map[string]*watched // by address; nil where there is one alone

	mu   sync.Mutex
	live map[*connection]struct{}
}

type connection struct {
	net.Conn
	all      *connections
	server   *watched // nil where there is one alone
	answered atomic.Bool
}

func newConnections(dial func(ctx context.Context, network, address string) (net.Conn, error), servers []string) *connections {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	c := &connections{dial: dial, live: make(map[*connection]struct{})}
	if len(servers) > 1 {
		c.servers = make(map[string]*watched, len(servers))
		for _, server := range servers {
			c.servers[server] = new(watched)
		}
	}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// DialContext is for the client's field of that name.
func (c *connections) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	server := c.servers[address]
	raw, err := c.dialWatched(ctx, network, address, server)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		_ = raw.Close()
		return nil, tier.ErrClosed
	}
	conn := &connection{Conn: raw, all: c, server: server}
	c.live[conn] = struct{}{}
	return conn, nil
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
