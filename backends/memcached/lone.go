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
	return lone.New(lone.Limits{Connect: o.Timeout}, func(conn *lone.Conn) lone.Client[item] {
		return &loneClient{timeout: o.Timeout, dial: func() (net.Conn, error) {
			return dialWithin(o.Timeout, name, func(ctx context.Context, network, address string) (net.Conn, error) {
				return conns.dialFor(ctx, network, address, conn.Dial) // which the end of conns ends too
			})
		}}
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

// Read implements [lone.Client]. That the server is silent is no reason to ask it again.
func (c *loneClient) Read(_ context.Context, itemKey string) (held item, o lone.Outcome, err error) {
	if c.reader == nil {
		conn, err := c.dial()
		if err != nil {
			return held, lone.Lost, err
		}
		c.reader = newReader(conn, c.timeout)
	}
	c.key[0] = itemKey
	err = c.reader.read(c.key[:], c.answer[:])
	held = c.answer[0].Value
	c.key[0], c.answer[0] = "", gather.Answer[item]{}
	switch {
	case err == nil:
		return held, lone.Answered, nil
	case isReply(err), errors.Is(err, os.ErrDeadlineExceeded):
		return item{}, lone.Final, err
	default:
		return item{}, lone.Lost, err
	}
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
