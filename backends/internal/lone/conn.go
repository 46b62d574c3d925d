package lone

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// Conn is the connection of a line's client: what is under way on it can be ended, and it with
// that.
type Conn struct {
	net.Conn        // nil until it is dialled
	poll     *poll  // nil where it is not polled
	endNow   func() // is end

	mu    sync.Mutex
	ended bool
	unfit bool // what was dialled cannot be ended
}

func newConn() *Conn {
	c := new(Conn)
	c.endNow = c.end
	return c
}

var (
	errUnfit = errors.New("deadlines of the connection are not known to end what is under way")
	errLost  = errors.New("the connection is lost")
)

// Over has it stand on a connection that was dialled for it. There is one in its life: what
// dials again is told that the connection is lost. One that it cannot stand on is closed.
func (c *Conn) Over(dialled net.Conn) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unfit = c.unfit || !canEnd(dialled)
	if c.Conn == nil && !c.ended && !c.unfit {
		c.Conn, c.poll = dialled, newPoll(dialled)
		return c, nil
	}
	_ = dialled.Close()
	if c.unfit {
		return nil, errUnfit
	}
	return nil, errLost
}

// Read implements [net.Conn].
func (c *Conn) Read(b []byte) (int, error) {
	if c.poll != nil {
		return c.poll.Read(b)
	}
	return c.Conn.Read(b)
}

func (c *Conn) isUnfit() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unfit
}

// canEnd reports whether a deadline ends what is under way. A type that we do not know may take
// none, as connections through SSH do not.
func canEnd(c net.Conn) bool {
	switch c := c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	case *tls.Conn:
		return canEnd(c.NetConn())
	default:
		return false
	}
}

// past is a deadline that ends what is under way.
var past = time.Unix(1, 0)

// end has what is under way fail, and all that comes.
func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.Conn != nil {
		_ = c.Conn.SetDeadline(past)
	}
}

// SetDeadline implements [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error { return c.set(t, net.Conn.SetDeadline) }

// SetReadDeadline implements [net.Conn].
func (c *Conn) SetReadDeadline(t time.Time) error { return c.set(t, net.Conn.SetReadDeadline) }

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.set(t, net.Conn.SetWriteDeadline) }

func (c *Conn) set(t time.Time, set func(net.Conn, time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil // the deadline that ended it stays
	}
	return set(c.Conn, t)
}
