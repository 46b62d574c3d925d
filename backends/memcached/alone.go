package memcached

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Of several servers one that does not answer is left alone, so that its keys fail at once
// and do not hold the places of calls to the others, nor have a cache's breaker keep away from
// all of them. Of one server alone the breaker is enough.

// LeftAloneError says that a server was not asked, as it has not answered of late. It is
// [tier.Resting]: the store serves the keys of the others.
type LeftAloneError struct{ Server string }

func (e *LeftAloneError) Error() string {
	return "server " + e.Server + " is left alone: it has not answered of late"
}

// FailureKind implements [tier.Failure].
func (e *LeftAloneError) FailureKind() string { return "server left alone" }

// Outage implements [tier.Failure].
func (e *LeftAloneError) Outage() bool { return false }

// RetryAfter implements [tier.Resting].
func (e *LeftAloneError) RetryAfter() time.Duration { return aloneFor }

var _ tier.Resting = (*LeftAloneError)(nil)

const (
	// enoughFailures in a row, without an answer between them, have a server left alone.
	enoughFailures = 2
	// aloneFor is for how long. Then one call asks it, and others do once it has answered.
	aloneFor = time.Second
)

// watched is what is known of how one server answers.
type watched struct {
	failures atomic.Int32 // in a row

	mu    sync.Mutex
	until time.Time // when it may be asked again
}

// answered notes that the server lives.
func (w *watched) answered() {
	if w.failures.Load() > 0 {
		w.failures.Store(0)
	}
}

// failed notes that the server did not answer, and reports whether it is left alone from now
// on.
func (w *watched) failed() bool {
	n := w.failures.Add(1)
	if n >= enoughFailures {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.until = time.Now().Add(aloneFor)
	}
	return n == enoughFailures
}

// mayAsk reports whether a connection to the server may be made. Of a server that is left
// alone it says so to one in aloneFor.
func (w *watched) mayAsk() bool {
	if w.failures.Load() < enoughFailures {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Before(w.until) {
		return false
	}
	w.until = now.Add(aloneFor)
	return true
}

// isSilence reports whether a read of a connection has failed as those of a server do that
// does not answer. One that closes a connection which it has answered on before may have
// found it idle.
func isSilence(err error, answeredBefore bool) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || !answeredBefore && !errors.Is(err, net.ErrClosed)
}

// dialWatched makes a connection unless the server is left alone.
func (c *connections) dialWatched(ctx context.Context, network, address string, w *watched) (net.Conn, error) {
	if w == nil {
		return c.dial(ctx, network, address)
	}
	if !w.mayAsk() {
		return nil, &LeftAloneError{Server: address}
	}
	conn, err := c.dial(ctx, network, address)
	if err != nil && c.life.Err() == nil {
		c.noAnswer(w)
	}
	return conn, err
}

// noAnswer notes a server's failure. When it is left alone from now on the calls to it that
// are under way end, and its connections with them.
func (c *connections) noAnswer(w *watched) {
	if !w.failed() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.live {
		if conn.server == w {
			_ = conn.Conn.Close()
		}
	}
}

// Read implements [net.Conn].
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	switch w := c.server; {
	case w == nil:
	case n > 0:
		c.answered.Store(true)
		w.answered()
	case err != nil && isSilence(err, c.answered.Load()) && c.all.life.Err() == nil:
		c.all.noAnswer(w)
	}
	return n, err
}
