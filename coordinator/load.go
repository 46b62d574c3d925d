package coordinator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/terracecache/terrace/tier"
)

// The states of a flight's watch.
const (
	loaderRuns int32 = iota + 1
	loaderReturned
	loaderAbandoned
)

// doLoad calls the loader, stores its answer and lands the flight. The loader runs
// on this goroutine, under a watch that lands the flight without it when it takes
// too long or the cache is closed (L3).
func (c *Cache[K, V]) doLoad(f *flight[K, V]) {
	place, ok := c.enterLoads(f)
	if !ok {
		return
	}
	defer place.leave()
	limit := c.settings.Load().limits.LoadTimeout
	stage := new(loadStage[V])
	stage.ctx.values = f.work.values
	stage.ctx.deadline = time.Now().Add(limit)
	stage.ctx.node = f.standBy(&stage.node)
	f.loading = stage
	defer stage.ctx.end(context.Canceled)
	f.watch.Store(loaderRuns)
	timer := time.AfterFunc(limit, func() { c.abandon(f, ErrLoadTimeout, context.DeadlineExceeded) })
	defer timer.Stop()
	if f.work.Err() != nil { // closed before there was something to abandon
		c.abandon(f, ErrClosed, context.Canceled)
		return
	}

	c.counts.loads.Add(1)
	began := tier.Now()
	returned := false
	defer func() {
		if returned || !f.watch.CompareAndSwap(loaderRuns, loaderReturned) {
			return
		}
		err := ErrGoexit
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
		c.finish(f, c.loadFailed(f, err))
	}()
	loaded, err := f.load.call(&stage.ctx, f.key, f.finding.reserve)
	returned = true
	place.leave()
	if !f.watch.CompareAndSwap(loaderRuns, loaderReturned) {
		return // the watch has landed the flight
	}
	timer.Stop()
	absent := errors.Is(err, ErrAbsent)
	if err == nil && loaded.NotModified && f.finding.reserve == nil {
		err = ErrNotModified
	}
	if err != nil && !absent {
		c.finish(f, c.loadFailed(f, err))
		return
	}
	c.loadSucceeded(f, loaded, absent, began)
}

// abandon lands a flight whose loader still runs. From then on the loader's goroutine
// stores nothing. It keeps its place among the flights until the loader returns, but
// one key that hangs must not keep others from being refreshed.
func (c *Cache[K, V]) abandon(f *flight[K, V], why, ended error) {
	if !f.watch.CompareAndSwap(loaderRuns, loaderAbandoned) {
		return
	}
	f.loading.ctx.end(ended)
	c.leaveBackground(f)
	c.releaseLater(f)
	c.landed(f, c.loadFailed(f, why))
}

// loadFailed returns the answer of a load that failed: the stale value at hand, or
// the error for all who wait. Where there is something to serve meanwhile the key
// cools down (L4).
func (c *Cache[K, V]) loadFailed(f *flight[K, V], err error) answer[V] {
	x := &f.finding
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
	if (served || f.refreshing != nil) && !f.isFenced() { // a write has ended what came before it
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
func (c *Cache[K, V]) loadSucceeded(f *flight[K, V], loaded Loaded[V], absent bool, began tier.Instant) {
	now := tier.Now()
	pair, keep := c.newPair(f.key, &loaded, absent, f.finding.reserve, began, now.Sub(began))
	e := pair.Entry()
	loadedAnswer := &f.loading.loaded
	*loadedAnswer = answer[V]{entry: e, source: fromLoad}
	f.early.Store(loadedAnswer)
	c.cooldowns.clear(f.key)
	if e.UsableUntil().Sub(now) < c.storingTime() {
		// It could be over before it is stored.
		c.table.announce(f, *loadedAnswer)
	}
	c.storeLoaded(&f.work, f, pair, keep)
	c.finish(f, *loadedAnswer)
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

// newPair makes the entry of a loader's answer, with the key, and reports whether it is to
// be kept.
func (c *Cache[K, V]) newPair(key K, loaded *Loaded[V], absent bool, previous *tier.Entry[V], began tier.Instant, took time.Duration) (pair *tier.Pair[K, V], keep bool) {
	lifetime := &c.settings.Load().lifetime
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
	return tier.NewPair(key, value, m), keep
}
