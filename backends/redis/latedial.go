package redis

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// lateDials has connections that cannot be made fail when they are first used rather than
// when they are dialled. After as many failures as a pool has places go-redis refuses all
// calls for up to a second at a time, until it has dialled once in the background, so that a
// server that is back would be left alone for longer than the cache's breaker says. Those
// failures it does not count.
//
// It costs a connection that stands nothing.
type lateDials struct {
	timeout time.Duration
	final   bool // go-redis is not to try again
}

// dialLate gives it to a client of our own, unless that is to dial, or to try, more often
// than by our defaults. A Cluster's client tries again by itself, at another node too.
// That of one server would do so for the first command of each connection as well, with a
// pause each time, and is not let.
func dialLate(client redis.UniversalClient) {
	switch c := client.(type) {
	case *redis.Client:
		if o := c.Options(); o.DialerRetries <= 1 && o.MaxRetries <= 1 {
			c.AddHook(lateDials{timeout: o.DialTimeout, final: true})
		}
	case *redis.ClusterClient:
		c.OnNewNode(func(node *redis.Client) {
			if o := node.Options(); o.DialerRetries <= 1 {
				node.AddHook(lateDials{timeout: o.DialTimeout})
			}
		})
	}
}

// undialled is why a connection does not stand, as an error that go-redis takes for none
// of those after which it tries again.
type undialled struct{ err error }

func (e *undialled) Error() string { return e.err.Error() }

// DialHook implements [redis.Hook].
func (h lateDials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			return conn, nil
		}
		late := &lateConn{network: network, addr: addr, timeout: h.timeout, final: h.final, dial: next, err: err, failed: time.Now()}
		late.ctx, late.cancel = context.WithCancel(context.Background())
		return late, nil
	}
}

// ProcessHook implements [redis.Hook].
func (lateDials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements [redis.Hook].
func (lateDials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// lateConn is a connection that could not be made. Whoever it was dialled for is told so.
// Where he has left go-redis keeps it for others, for whom it is dialled again.
type lateConn struct {
	network, addr string
	timeout       time.Duration
	final         bool
	dial          redis.DialHook
	ctx           context.Context // ends with Close
	cancel        context.CancelFunc

	mu          sync.Mutex
	conn        net.Conn // nil until it stands
	err         error    // why it does not
	failed      time.Time
	read, write time.Time // deadlines
}

// sameDial is how long a failure is an answer rather than tried again.
const sameDial = 10 * time.Millisecond

// stand returns the connection, which it dials where that is due.
func (c *lateConn) stand() (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx.Err() != nil:
		return nil, net.ErrClosed
	case c.conn != nil:
		return c.conn, nil
	case time.Since(c.failed) >= sameDial:
		c.dialAgain()
	}
	switch {
	case c.err == nil:
		return c.conn, nil
	case c.final:
		return nil, &undialled{c.err}
	default:
		// go-redis takes one layer off what a new connection fails with.
		return nil, fmt.Errorf("%w", c.err)
	}
}

// dialAgain is called with the lock held.
func (c *lateConn) dialAgain() {
	until := time.Now().Add(c.timeout)
	if !c.write.IsZero() && c.write.Before(until) {
		until = c.write
	}
	ctx, cancel := context.WithDeadline(c.ctx, until)
	defer cancel()
	c.conn, c.err = c.dial(ctx, c.network, c.addr)
	if c.err != nil {
		c.conn, c.failed = nil, time.Now()
		return
	}
	_ = c.conn.SetReadDeadline(c.read)
	_ = c.conn.SetWriteDeadline(c.write)
}

// Read implements [net.Conn].
func (c *lateConn) Read(b []byte) (int, error) {
	conn, err := c.stand()
	if err != nil {
		return 0, err
	}
	return conn.Read(b)
}

// Write implements [net.Conn].
func (c *lateConn) Write(b []byte) (int, error) {
	conn, err := c.stand()
	if err != nil {
		return 0, err
	}
	return conn.Write(b)
}

// Close implements [net.Conn].
func (c *lateConn) Close() error {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		return c.conn.Close()
	}
	return nil
}

// SetDeadline implements [net.Conn].
func (c *lateConn) SetDeadline(t time.Time) error {
	return c.deadline(t, net.Conn.SetDeadline, &c.read, &c.write)
}

// SetReadDeadline implements [net.Conn].
func (c *lateConn) SetReadDeadline(t time.Time) error {
	return c.deadline(t, net.Conn.SetReadDeadline, &c.read)
}

// SetWriteDeadline implements [net.Conn].
func (c *lateConn) SetWriteDeadline(t time.Time) error {
	return c.deadline(t, net.Conn.SetWriteDeadline, &c.write)
}

func (c *lateConn) deadline(t time.Time, set func(net.Conn, time.Time) error, kept ...*time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range kept {
		*d = t
	}
	if c.conn != nil {
		return set(c.conn, t)
	}
	return nil
}

// LocalAddr implements [net.Conn].
func (c *lateConn) LocalAddr() net.Addr { return c.address(net.Conn.LocalAddr) }

// RemoteAddr implements [net.Conn].
func (c *lateConn) RemoteAddr() net.Addr { return c.address(net.Conn.RemoteAddr) }

func (c *lateConn) address(of func(net.Conn) net.Addr) net.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		return of(c.conn)
	}
	return lateAddr{c.network, c.addr}
}

// SyscallConn implements [syscall.Conn], by which go-redis looks whether the server has closed
// a connection, or sent something, while that was idle.
func (c *lateConn) SyscallConn() (syscall.RawConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if socket, ok := c.conn.(syscall.Conn); ok {
		return socket.SyscallConn()
	}
	return noSocket{}, nil
}

// noSocket is that of a connection that does not stand, or of one where go-redis does not look
// either when it stood at once, as of TLS: it calls nothing, so that nothing is found wrong.
type noSocket struct{}

// Control implements [syscall.RawConn].
func (noSocket) Control(func(uintptr)) error { return nil }

// Read implements [syscall.RawConn].
func (noSocket) Read(func(uintptr) bool) error { return nil }

// Write implements [syscall.RawConn].
func (noSocket) Write(func(uintptr) bool) error { return nil }

// lateAddr is the address that a connection was to be made to.
type lateAddr struct{ network, addr string }

// Network implements [net.Addr].
func (a lateAddr) Network() string { return a.network }

// String implements [net.Addr].
func (a lateAddr) String() string { return a.addr }
