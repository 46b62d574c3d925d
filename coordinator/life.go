package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// life counts what runs in the background, so that Close can wait for it. The count is spread
// over many cells, as each write begins and ends here, and cores that wrote one line for that
// would wait for each other.
type life struct {
	running spread
	closing atomic.Bool
	idle    chan struct{} // closed when closing and nothing runs
	isIdle  sync.Once
	closed  chan struct{} // closed when Close is done
}

func newLife() *life {
	return &life{running: newSpread(1), idle: make(chan struct{}), closed: make(chan struct{})}
}

// begin counts one more, or returns false when the cache is closing.
func (l *life) begin() bool {
	// In this order: whoever does not see closing is in the sum that close makes after it.
	cell := l.running.here(0)
	cell.Add(1)
	if !l.closing.Load() {
		return true
	}
	cell.Add(^uint64(0))
	l.settle()
	return false
}

// isClosing reports whether Close has begun.
func (l *life) isClosing() bool { return l.closing.Load() }

func (l *life) end() {
	l.running.here(0).Add(^uint64(0))
	if l.closing.Load() {
		l.settle()
	}
}

// settle notes that nothing runs any more, if that is so. Nothing new stays while closing,
// and who ends looks again, so a sum that is too great for the moment does no harm; too
// small it cannot be.
func (l *life) settle() {
	if l.running.sum(0) == 0 {
		l.isIdle.Do(func() { close(l.idle) })
	}
}

// close keeps begin from letting anything in, and reports whether it was the first
// to do so.
func (l *life) close() bool {
	if !l.closing.CompareAndSwap(false, true) {
		return false
	}
	l.settle()
	return true
}

// Close ends the cache: calls that begin from now on answer [ErrClosed], loads and
// writes under way are waited for as long as the context lasts and then cancelled,
// and the tiers are closed. The error says what had to be cancelled and which tiers
// failed to close. A loader that does not heed its context keeps its goroutine until
// it returns; nobody waits for it. Closing again waits for the first Close, within
// the context, and returns nil.
//
// A loader must not close its own cache: it would wait for itself, and gets an
// [ErrCycle].
func (c *Cache[K, V]) Close(ctx context.Context) error {
	for n := nodeOf(ctx); n != nil; n = n.parent {
		if f, ok := n.owner.(*flight[K, V]); ok && f.cache == c && !f.hasLanded() {
			return fmt.Errorf("terrace: cache %q: close from within its loader: %w", c.name, ErrCycle)
		}
	}
	if !c.life.close() {
		select {
		case <-c.life.closed:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("terrace: cache %q: close: %w", c.name, ctx.Err())
		}
	}
	defer close(c.life.closed)
	c.settingsMu.Lock()
	last := *c.settings.Load()
	last.closed, last.top = true, nil
	c.settings.Store(&last)
	c.settingsMu.Unlock()
	c.clock.stop()

	var errs []error
	c.rushRepeats()
	select {
	case <-c.life.idle:
	default:
		select {
		case <-c.life.idle:
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("terrace: cache %q: close: cancelled what was still under way: %w", c.name, ctx.Err()))
		}
	}
	c.stop(ErrClosed)
	c.table.eachUnderway(func(f *flight[K, V]) {
		f.work.end(context.Canceled)
		c.abandon(f, ErrClosed, context.Canceled)
	})
	for _, l := range c.levels {
		l.deadlines.rest()
	}
	errs = append(errs, c.closeListening(ctx))
	return errors.Join(append(errs, c.closeTiers(ctx))...)
}

// closeGrace is how long tiers are waited for whose Close takes longer than the
// context.
const closeGrace = time.Second

func (c *Cache[K, V]) closeTiers(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() {
		var errs []error
		for _, l := range c.levels {
			if err := l.store.Close(); err != nil {
				errs = append(errs, &TierError{Tier: l.name, Op: "close", Err: err})
			}
		}
		closed <- errors.Join(errs...)
	}()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
	}
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case err := <-closed:
		return err
	case <-grace.C:
		return fmt.Errorf("terrace: cache %q: close: tiers are still closing: %w", c.name, ctx.Err())
	}
}

// untilClosed returns the context for a write: the caller's, which Close can cancel
// too. Tiers in memory need none, and then release is nil.
func (c *Cache[K, V]) untilClosed(ctx context.Context) (until context.Context, release func()) {
	if c.allLocal() {
		return ctx, nil
	}
	until, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.base, func() { cancel(ErrClosed) })
	return until, func() { unhook(); cancel(nil) }
}
