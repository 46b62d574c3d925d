package memcached

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/terracecache/terrace/backends/internal/gather"
	"github.com/terracecache/terrace/backends/internal/lone"
)

// newLine returns a line to a server, whose connection is one of conns.
func newLine(name string, o Options, conns *connections) *lone.Line[item] {
	return lone.New(o.Timeout, func(_ context.Context, conn *lone.Conn) lone.Client[item] {
		over := func(ctx context.Context, network, address string) (net.Conn, error) {
			return conns.dialOver(ctx, network, address, conn.Over) // which the end of conns ends too
		}
		return &loneClient{timeout: o.Timeout, dial: func() (net.Conn, error) { return dialWithin(o.Timeout, name, over) }}
	})
}

// loneClient is the client of a line.
type loneClient struct {
	timeout time.Duration
	dial    func() (net.Conn, error)

	reader *reader // nil until the first read
	key    [1]string
	answer [1]gather.Answer[item]
}

// Read implements [lone.Client].
func (c *loneClient) Read(itemKey string) (held item, stands bool, err error) {
	if c.reader == nil {
		conn, err := c.dial()
		if err != nil {
			return held, false, err
		}
		c.reader = newReader(conn, c.timeout)
	}
	c.key[0] = itemKey
	err = c.reader.read(c.key[:], c.answer[:])
	held = c.answer[0].Value
	c.key[0], c.answer[0] = "", gather.Answer[item]{}
	return held, err == nil, err
}

// Close implements [lone.Client].
func (c *loneClient) Close() {
	if c.reader != nil {
		_ = c.reader.conn.Close()
	}
}

// readAlone is what the gatherer does with a read that is alone.
func (sv *server) readAlone(ctx context.Context, itemKey string) (a gather.Answer[item], ok bool) {
	a.Value, ok, a.Err = sv.line.Read(ctx, itemKey)
	switch {
	case ok && a.Err == nil:
		sv.watch.hasAnswered()
	case errors.Is(a.Err, os.ErrDeadlineExceeded):
		sv.dropIdle() // as redo does
	}
	return a, ok
}
