package lone

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// Conn is the connection of a line's client: what is under way on it can be ended, and it with
// that.
type Conn struct {
	net.Conn        // nil until it is dialled
	poll     *poll  // nil where it is not polled
	endNow   func() // is end

	mu      sync.Mutex
	dialled bool
	ended   bool
	unfit   bool // what was dialled cannot be ended
}

func newConn() *Conn {
	c := new(Conn)
	c.endNow = c.end
	return c
}

// errLost is the answer to who dials again, or behind the end.
var errLost = errors.New("the connection is lost, or cannot be used by its reader")

// Dial dials what the connection stands on, once in its life: who does so again is told at once
// that it is lost.
func (c *Conn) Dial(dial func() (net.Conn, error)) (net.Conn, error) {
	c.mu.Lock()
	again := c.dialled || c.ended
	c.dialled = true
	c.mu.Unlock()
	if again {
		return nil, errLost
	}
	dialled, err := dial()
	if err != nil {
		return nil, err
	}
	return c.over(dialled)
}

// over has it stand on a connection, or closes that.
func (c *Conn) over(dialled net.Conn) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unfit = !canEnd(dialled)
	if c.ended || c.unfit {
		_ = dialled.Close()
		return nil, errLost
	}
	c.Conn, c.poll = dialled, newPoll(dialled)
	if _, ok := dialled.(syscall.Conn); ok {
		return socket{c}, nil
	}
	return c, nil
}

// socket is a connection that can tell whether the other side has closed it, or sent something
// that nobody has asked for. go-redis looks for that.
type socket struct{ *Conn }

// SyscallConn implements [syscall.Conn].
func (s socket) SyscallConn() (syscall.RawConn, error) {
	return s.Conn.Conn.(syscall.Conn).SyscallConn()
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
