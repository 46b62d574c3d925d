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
		f.abandon()
		c.loadFailed(f, x, refreshing, context.Cause(loadCtx))
	})

	c.counts.loads.Add(1)
	began := tier.Now()
	returned := false
	defer func() {
		if returned || !unwatch() {
			return
		}
		if p := recover(); p != nil {
			c.loadFailed(f, x, refreshing, &PanicError{Value: p, Stack: debug.Stack()})
		} else {
			c.loadFailed(f, x, refreshing, ErrGoexit)
		}
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
		c.loadFailed(f, x, refreshing, err)
		return
	}
	c.loadSucceeded(ctx, f, x, loaded, absent, began)
}

// loadFailed lands the flight with the stale value at hand, or with the error for
// all who wait. Where there is something to serve meanwhile the key cools down (L4).
func (c *Cache[K, V]) loadFailed(f *flight[K, V], x *finding[V], refreshing bool, err error) {
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
	if served || refreshing {
		c.cooldowns.failed(f.key, now) // before the flight lands: whoever reads next must find it
	}
	if served {
		c.log.warn("load failed; a stale value is served", "", err)
		c.finish(f, x.asReserve())
		return
	}
	c.log.warn("load failed", "", err)
	c.finish(f, answer[V]{err: fmt.Errorf("terrace: cache %q: load: %w", c.name, err)})
}

// loadSucceeded stores the loader's answer and lands the flight with it.
func (c *Cache[K, V]) loadSucceeded(ctx context.Context, f *flight[K, V], x *finding[V], loaded Loaded[V], absent bool, began tier.Instant) {
	e, keep := c.newEntry(loaded, absent, x.reserve, began, tier.Now().Sub(began))
	a := answer[V]{entry: e, source: fromLoad}
	f.early.Store(&a)
	c.cooldowns.clear(f.key)
	c.storeLoaded(ctx, f, x, e, keep)
	c.finish(f, a)
}

// newEntry makes the entry of a loader's answer, and reports whether it is to be
// kept.
func (c *Cache[K, V]) newEntry(loaded Loaded[V], absent bool, previous *tier.Entry[V], began tier.Instant, took time.Duration) (e *tier.Entry[V], keep bool) {
	lifetime := c.settings.Load().lifetime
	m := tier.Meta{LoadedAt: began, LoadTime: took, Absent: absent, Tags: loaded.Tags, Validator: loaded.Validator}
	value := loaded.Value
	life := lifetime.Value(loaded.TTL, draw())
	keep = !loaded.NoStore
	switch {
	case absent:
		var zero V
		value = zero
		l, kept := lifetime.Absence(draw())
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
