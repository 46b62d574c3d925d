package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Set stores a value under the key in all tiers, from the bottom up, for the life
// that the lifetime gives it. A Get in this process that begins after Set has
// returned has this value or a newer one, or loads (W2); with an error too, which is
// then a [WriteError] that names the tiers that failed and are tried again (W4). Only
// when the error is not a WriteError has nothing been done.
func (c *Cache[K, V]) Set(ctx context.Context, key K, value V) error {
	l := Loaded[V]{Value: value}
	return c.set(ctx, key, &l)
}

// SetWith is Set with what else a loader can say of a value. NotModified and
// NoStore have no meaning here and are refused.
func (c *Cache[K, V]) SetWith(ctx context.Context, key K, l Loaded[V]) error {
	switch {
	case l.NotModified, l.NoStore:
		return errors.New("terrace: SetWith takes neither NotModified nor NoStore")
	case l.TTL < 0:
		return fmt.Errorf("terrace: SetWith: TTL %v: want zero (for the lifetime's) or more", l.TTL)
	}
	return c.set(ctx, key, &l)
}

func (c *Cache[K, V]) set(ctx context.Context, key K, l *Loaded[V]) error {
	w, err := c.beginWrite(ctx, key, "set")
	if err != nil {
		return err
	}
	defer c.endWrite(&w)
	pair, _ := c.newPair(key, l, false, nil, tier.Now(), 0)
	return c.writeAll(w.ctx, key, "set", &repeat[K, V]{pair: pair, at: pair.Entry().LoadedAt()})
}

// Delete removes the key from all tiers, from the bottom up, so that no reader
// carries an old value up again (W3). A Get in this process that begins after Delete
// has returned never sees what was there before, also when an error, as that of
// [Cache.Set], names tiers that failed. A tier that can write on condition keeps a
// tombstone for as long as a load may take, so that no other process stores what it
// began to load before (W1).
func (c *Cache[K, V]) Delete(ctx context.Context, key K) error {
	w, err := c.beginWrite(ctx, key, "delete")
	if err != nil {
		return err
	}
	defer c.endWrite(&w)
	return c.writeAll(w.ctx, key, "delete", &repeat[K, V]{at: tier.Now()})
}

// Expire makes what the tiers hold under the key stale at once: the next Get loads,
// or serves it while it loads, as the policy and the lifetime's stale windows say.
// Without such windows it is Delete.
func (c *Cache[K, V]) Expire(ctx context.Context, key K) error {
	w, err := c.beginWrite(ctx, key, "expire")
	if err != nil {
		return err
	}
	defer c.endWrite(&w)
	now := tier.Now()
	if c.table.clearing.Load() > 0 {
		// What is read now and written back could outlive the Clear.
		return c.writeAll(w.ctx, key, "expire", &repeat[K, V]{at: now})
	}
	defer c.bus.wrote(key, busExpire)
	return c.eachUp("expire", func(i int, l *level[K, V]) error {
		err := l.bounded(w.ctx, func(ctx context.Context) error { return c.expireAt(ctx, l, key, now) })
		if err != nil {
			// What cannot be marked must go.
			c.repeatLater(w.ctx, i, key, repeat[K, V]{at: now}, err)
		}
		return err
	})
}

// expireAt expires what one level holds.
func (c *Cache[K, V]) expireAt(ctx context.Context, l *level[K, V], key K, now tier.Instant) error {
	if _, lacks := l.repeats.get(key); lacks {
		// Others may have written there since, and what waits to be written there may be
		// older. Both are over.
		err := c.bury(ctx, l, key)
		if err == nil {
			c.settled(l, key)
		}
		return err
	}
	if l.swap != nil {
		return c.expireIn(ctx, l, key, now)
	}
	e, err := l.store.Get(ctx, key)
	switch {
	case errors.Is(err, tier.ErrUnreadable):
		return c.apply(ctx, l, key, nil, now)
	case err != nil || e == nil || e.FreshUntil() <= now:
		return err
	}
	e = c.expired(e, now)
	if l.remaining(e, now) <= 0 {
		return c.apply(ctx, l, key, nil, now)
	}
	return l.store.Set(ctx, key, e, l.remaining(e, now))
}

// expireIn expires what a level that writes on condition holds, and leaves another version
// there also where there is nothing to expire: so no load that began before, in whatever
// process, is stored after it (W1).
func (c *Cache[K, V]) expireIn(ctx context.Context, l *level[K, V], key K, now tier.Instant) error {
	for range 3 {
		e, version, err := l.swap.GetVersion(ctx, key)
		if err != nil && !errors.Is(err, tier.ErrUnreadable) {
			return err
		}
		if e != nil && e.LoadedAt() > now {
			return nil // it has been loaded since
		}
		if e != nil && e.FreshUntil() > now {
			e = c.expired(e, now)
		}
		var done bool
		if e != nil && l.remaining(e, now) > 0 {
			done, err = c.swapIn(ctx, l, key, e, version)
		} else {
			done, err = l.swap.BuryIf(ctx, key, c.hold(), version)
		}
		if done || err != nil {
			return err
		}
	}
	// Others write the key as fast as it can be read.
	return l.swap.Bury(ctx, key, c.hold())
}

// bury takes away what a level holds, without a time limit of its own.
func (c *Cache[K, V]) bury(ctx context.Context, l *level[K, V], key K) error {
	if l.swap != nil {
		return c.deleteAt(ctx, l, key)
	}
	return l.store.Delete(ctx, key)
}

// expired returns the entry as one whose TTL ends at the instant. Absences have no
// stale windows.
func (c *Cache[K, V]) expired(e *tier.Entry[V], at tier.Instant) *tier.Entry[V] {
	l := c.settings.Load().lifetime
	if e.Absent() {
		return e.Expired(at).Capped(at)
	}
	return e.Expired(at).Capped(at.Add(max(l.StaleWhileRevalidate, l.StaleIfError)))
}

// writing is a write of one key under way: behind the fence, and in the key's turn.
type writing[K comparable, V any] struct {
	write[K, V]
	ctx     context.Context // the caller's, which Close can end too
	release func()          // nil where there is nothing to release
}

func (w *writing[K, V]) releaseContext() {
	if w.release != nil {
		w.release()
	}
}

// beginWrite waits for the key's turn. Whoever gets no error must call endWrite.
func (c *Cache[K, V]) beginWrite(ctx context.Context, key K, op string) (w writing[K, V], err error) {
	if !c.table.keys.Storable(key) {
		return w, tier.ErrBadKey
	}
	if err := ctx.Err(); err != nil {
		return w, fmt.Errorf("terrace: cache %q: %s: nothing done: %w", c.name, op, err)
	}
	if !c.life.begin() {
		return w, ErrClosed
	}
	w.ctx, w.release = c.untilClosed(ctx)
	var hasTurn bool
	w.write, hasTurn = c.table.beginWrite(key)
	if !hasTurn && c.allLocal() {
		hasTurn = w.spin()
	}
	if !hasTurn {
		if err := w.shard.takeTurnFor(w.ctx, w.record); err != nil {
			w.end(false)
			w.releaseContext()
			c.life.end()
			return w, fmt.Errorf("terrace: cache %q: %s: waiting for another write of the key: %w", c.name, op, err)
		}
	}
	c.cooldowns.clear(key)
	return w, nil
}

func (c *Cache[K, V]) endWrite(w *writing[K, V]) {
	w.end(true)
	w.releaseContext()
	c.life.end()
}

// writeAll carries a write to all levels, from the bottom up.
func (c *Cache[K, V]) writeAll(ctx context.Context, key K, op string, w *repeat[K, V]) error {
	var failed *WriteError
	for i := len(c.levels) - 1; i >= 0; i-- {
		l := c.levels[i]
		if err := c.apply(ctx, l, key, w.pair, w.at); err != nil {
			c.repeatLater(ctx, i, key, *w, err)
			failed = c.writeFailed(failed, l, op, err)
		} else {
			c.settled(l, key)
		}
	}
	c.bus.wrote(key, busDrop)
	return failed.orNil()
}

// apply carries a write to one level: a pair where there is one that still lives,
// else a deletion. The time may be a little old: a level that is told how long to
// keep the entry is told exactly.
func (c *Cache[K, V]) apply(ctx context.Context, l *level[K, V], key K, pair *tier.Pair[K, V], now tier.Instant) error {
	if l.local && l.swap == nil {
		if pair != nil && pair.Entry().UsableUntil() > now {
			return l.setLocal(ctx, pair)
		}
		return l.store.Delete(ctx, key)
	}
	return c.applyBounded(ctx, l, key, pair)
}

// applyBounded is apply for a level that has a time limit, or writes on condition.
func (c *Cache[K, V]) applyBounded(ctx context.Context, l *level[K, V], key K, pair *tier.Pair[K, V]) error {
	return l.bounded(ctx, func(ctx context.Context) error {
		ttl := time.Duration(0)
		if pair != nil {
			ttl = l.remaining(pair.Entry(), tier.Now())
		}
		switch {
		case ttl > 0 && l.swap != nil:
			return c.setAt(ctx, l, key, pair.Entry())
		case ttl > 0:
			return l.store.Set(ctx, key, pair.Entry(), ttl)
		default:
			return c.bury(ctx, l, key)
		}
	})
}

// setAt carries a Set to a level that writes on condition. The condition is not for
// others' sake, whom a Set overwrites: without it a Set that timed out and reaches
// the server late would overwrite a later one.
func (c *Cache[K, V]) setAt(ctx context.Context, l *level[K, V], key K, e *tier.Entry[V]) error {
	for range 3 {
		seen, _, err := l.sightingOf(ctx, key, e.LoadedAt())
		if err != nil {
			return err
		}
		if stored, err := c.swapIn(ctx, l, key, e, seen.version); stored || err != nil {
			return err
		}
	}
	// Others write the key as fast as it can be read.
	return l.store.Set(ctx, key, e, l.remaining(e, tier.Now()))
}

// deleteAt carries a Delete to a level that writes on condition, for the reason that setAt
// has: one that timed out and reaches the server late would put its tombstone, which is
// older than what was written since, in the place of that, and older loads and Sets that
// wait to be stored would take it for the last word.
func (c *Cache[K, V]) deleteAt(ctx context.Context, l *level[K, V], key K) error {
	for range 3 {
		_, version, err := l.swap.GetVersion(ctx, key)
		if err != nil && !errors.Is(err, tier.ErrUnreadable) {
			return err
		}
		if buried, err := l.swap.BuryIf(ctx, key, c.hold(), version); buried || err != nil {
			return err
		}
	}
	// Others write the key as fast as it can be read.
	return l.swap.Bury(ctx, key, c.hold())
}

// hold is how long a tombstone must stay: no load that began before it was written
// may still be on its way to be stored.
func (c *Cache[K, V]) hold() time.Duration {
	return addDurations(c.settings.Load().longest, c.storingTime())
}

// eachUp runs a call for each level, from the bottom up, and collects the failures.
func (c *Cache[K, V]) eachUp(op string, call func(int, *level[K, V]) error) error {
	var failed *WriteError
	for i := len(c.levels) - 1; i >= 0; i-- {
		l := c.levels[i]
		if err := call(i, l); err != nil {
			failed = c.writeFailed(failed, l, op, err)
		}
	}
	return failed.orNil()
}

func (c *Cache[K, V]) writeFailed(failed *WriteError, l *level[K, V], op string, err error) *WriteError {
	c.levelFailed(l, op, err)
	if failed == nil {
		failed = new(WriteError)
	}
	failed.Tiers = append(failed.Tiers, &TierError{Tier: l.name, Op: op, Err: err})
	return failed
}
