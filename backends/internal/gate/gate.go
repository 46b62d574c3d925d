// Package gate gives calls of client libraries that cannot be interrupted the
// deadline of a context: the caller leaves on time, and the call ends by itself.
package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Gate bounds how many calls are under way, those included whose callers have left.
// It may be used concurrently.
type Gate struct {
	// slots holds one element for each call under way.
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

// New returns a gate that lets n calls in at a time.
func New(n int) *Gate {
	return &Gate{slots: make(chan struct{}, n), closed: make(chan struct{})}
}

// Do runs op in a goroutine and returns what it returns, or the context's error as
// soon as that has ended, which also bounds the wait for a slot. The op then goes on,
// and keeps its slot until it returns; it must not touch memory that belongs to the
// caller. After Close the answer is [tier.ErrClosed].
func Do[T any](ctx context.Context, g *Gate, op func() (T, error)) (T, error) {
	var none T
	if err := g.Enter(ctx); err != nil {
		return none, err
	}
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1) // nobody may be there to receive
	go func() {
		defer g.Leave()
		o := outcome{err: ErrGoexit}
		defer func() {
			if p := recover(); p != nil {
				o = outcome{err: Panicked(p)}
			}
			done <- o
		}()
		o.value, o.err = op()
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		select {
		case o := <-done:
			return o.value, o.err
		default:
			return none, ctx.Err()
		}
	}
}

// Panicked is the answer to a call whose client panicked with p.
func Panicked(p any) error { return fmt.Errorf("the client panicked: %v", p) }

// ErrGoexit is the answer to a call whose client ended its goroutine.
var ErrGoexit = errors.New("the client ended the goroutine of its call")

// Enter waits for a slot within the context. Who is let in without an error leaves
// by [Gate.Leave].
func (g *Gate) Enter(ctx context.Context) error {
	if g.Closed() {
		return tier.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case g.slots <- struct{}{}: // as mostly, and then the context's end needs no channel
	default:
		select {
		case g.slots <- struct{}{}:
		case <-g.closed:
			return tier.ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("all %d calls at a time are under way: %w", cap(g.slots), ctx.Err())
		}
	}
	if g.Closed() {
		g.Leave()
		return tier.ErrClosed
	}
	return nil
}

// Leave gives the slot of an Enter back.
func (g *Gate) Leave() { <-g.slots }

// Closed reports whether Close was called.
func (g *Gate) Closed() bool {
	select {
	case <-g.closed:
		return true
	default:
		return false
	}
}

// Close lets no further call in. It reports whether it was the first to do so.
func (g *Gate) Close() bool {
	first := false
	g.once.Do(func() {
		close(g.closed)
		first = true
	})
	return first
}

// Drain waits until the calls under way at Close have ended, for the limit at most.
// It is called once.
func (g *Gate) Drain(limit time.Duration) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for range cap(g.slots) {
		select {
		case g.slots <- struct{}{}: // never given back
		case <-timeout.C:
			return
		}
	}
}
