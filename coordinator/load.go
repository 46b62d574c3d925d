package coordinator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/terracecache/terrace/tier"
)

// doLoad calls the loader, stores its answer and lands the flight. The loader runs
// on this goroutine, under a watch that lands the flight without it when it takes
// too long or the cache is closed (L3).
func (c *Cache[K, V]) doLoad(ctx context.Context, f *flight[K, V], load loading[K, V], x *finding[V], refreshing bool) {
	loadCtx, cancel := context.WithTimeoutCause(ctx, c.limits.LoadTimeout, ErrLoadTimeout)
	defer cancel()
	loadCtx = context.WithValue(loadCtx, nodeKey{}, &f.node)
	unwatch := context.AfterFunc(loadCtx, func() {
		// From now on the goroutine stores nothing. It keeps its place among the
		// flights until the loader returns, but one key that hangs must not keep
		// others from being refreshed.
		c.leaveBackground(f)
		c.landed(f, c.loadFailed(f, x, refreshing, context.Cause(loadCtx)))
	})

	c.counts.loads.Add(1)
	began := tier.Now()
	returned := false
	defer func() {
		if returned || !unwatch() {
			return
		}
		err := ErrGoexit
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
		c.finish(f, c.loadFailed(f, x, refreshing, err))
	}()
	loaded, err := load.call(loadCtx, f.key, x.reserve)
	returned = true
	if !unwatch() {
		return // the watch has landed the flight
	}
	absent := errors.Is(err, ErrAbsent)
	if err == nil && loaded.NotModified && x.reserve == nil {
		err = ErrNotModified
	}
	if err != nil && !absent {
		if loadCtx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(loadCtx), err)
		}
		c.finish(f, c.loadFailed(f, x, refreshing, err))
		return
	}
	c.loadSucceeded(ctx, f, x, loaded, absent, began)
}

// loadFailed returns the answer of a load that failed: the stale value at hand, or
// the error for all who wait. Where there is something to serve meanwhile the key
// cools down (L4).
func (c *Cache[K, V]) loadFailed(f *flight[K, V], x *finding[V], refreshing bool, err error) answer[V] {
	n := c.counts
	n.loadFailures.Add(1)
	var panicked *PanicError
	switch {
	case errors.As(err, &panicked), errors.Is(err, ErrGoexit):
		n.loadPanics.Add(1)
	case errors.Is(err, ErrLoadTimeout):
		n.loadTimeouts.Add(1)
	}
	now := tier.Now()
	served := c.settings.Load().servesOnError(x.reserve, now)
	if (served || refreshing) && !f.isFenced() { // a write has ended what came before it
		c.cooldowns.failed(f.key, now) // before the flight lands: whoever reads next must find it
	}
	if served {
		c.log.warn("load failed; a stale value is served", "", err)
		return x.asReserve()
	}
	c.log.warn("load failed", "", err)
	return answer[V]{err: fmt.Errorf("terrace: cache %q: load: %w", c.name, err)}
}

// loadSucceeded stores the loader's answer and lands the flight with it.
func (c *Cache[K, V]) loadSucceeded(ctx context.Context, f *flight[K, V], x *finding[V], loaded Loaded[V], absent bool, began tier.Instant) {
	e, keep := c.newEntry(loaded, absent, x.reserve, began, tier.Now().Sub(began))
	a := answer[V]{entry: e, source: fromLoad}
	f.early.Store(&a)
	c.cooldowns.clear(f.key)
	if e.UsableUntil().Sub(tier.Now()) < c.storingTime() {
		// It could be over before it is stored.
		c.table.announce(f, a)
	}
	c.storeLoaded(ctx, f, x, e, keep)
	c.finish(f, a)
}

// storingTime is how long the store step of a load may take.
func (c *Cache[K, V]) storingTime() time.Duration {
	var d time.Duration
	for _, l := range c.levels {
		if !l.local {
			d = addDurations(d, 2*l.timeout)
		}
	}
	return d
}

// newEntry makes the entry of a loader's answer, and reports whether it is to be
// kept.
func (c *Cache[K, V]) newEntry(loaded Loaded[V], absent bool, previous *tier.Entry[V], began tier.Instant, took time.Duration) (e *tier.Entry[V], keep bool) {
	lifetime := c.settings.Load().lifetime
	m := tier.Meta{LoadedAt: began, LoadTime: took, Absent: absent, Tags: loaded.Tags, Validator: loaded.Validator}
	value := loaded.Value
	life := lifetime.Value(loaded.TTL, draw())
	keep = !loaded.NoStore && loaded.TTL >= 0
	switch {
	case absent:
		var zero V
		value = zero
		l, kept := lifetime.Absence(loaded.TTL, draw())
		life, keep = l, keep && kept
	case loaded.NotModified:
		value = previous.Value()
		if m.Tags == nil {
			m.Tags = previous.Tags()
		}
		if m.Validator == "" {
			m.Validator = previous.Validator()
		}
	}
	c.noteLife(life.Usable)
	m.FreshUntil = began.Add(life.Fresh)
	m.UsableUntil = began.Add(life.Usable)
	return tier.NewEntry(value, m), keep
}
