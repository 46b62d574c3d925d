package memcached

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/internal/gather"
	"github.com/terracecache/terrace/backends/internal/lone"
)

// newLine returns a line to a server, whose connection is one of conns.
func newLine(name string, o Options, conns *connections) *lone.Line[*memcache.Item] {
	return lone.New(o.Timeout, func(_ context.Context, conn *lone.Conn) lone.Client[*memcache.Item] {
		return loneClient{newClient(name, o, func(ctx context.Context, network, address string) (net.Conn, error) {
			return conns.dialOver(ctx, network, address, conn.Over) // which the end of conns ends too
		})}
	})
}

// loneClient is the client of a line.
type loneClient struct{ client *memcache.Client }

// Read implements [lone.Client]. It returns nil where there is nothing.
func (c loneClient) Read(itemKey string) (item *memcache.Item, stands bool, err error) {
	item, err = c.client.Get(itemKey)
	if errors.Is(err, memcache.ErrCacheMiss) {
		return nil, true, nil
	}
	return item, err == nil, replied(err)
}

// Close implements [lone.Client].
func (c loneClient) Close() { _ = c.client.Close() }

// readAlone is what the gatherer does with a read that is alone.
func (sv *server) readAlone(ctx context.Context, itemKey string) (a gather.Answer[*memcache.Item], ok bool) {
	a.Value, ok, a.Err = sv.line.Read(ctx, itemKey)
	switch {
	case ok && a.Err == nil:
		sv.watch.hasAnswered()
	case errors.Is(a.Err, os.ErrDeadlineExceeded):
		sv.dropIdle() // as redo does
	}
	return a, ok
}
