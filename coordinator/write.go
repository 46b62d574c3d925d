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
	return c.SetWith(ctx, key, Loaded[V]{Value: value})
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
	return c.write(ctx, key, "set", func(ctx context.Context) error {
		e, _ := c.newEntry(l, false, nil, tier.Now(), 0)
		return c.writeAll(ctx, key, "set", repeat[V]{entry: e, at: e.LoadedAt()})
	})
}

// Delete removes the key from all tiers, from the bottom up, so that no reader
// carries an old value up again (W3). A Get in this process that begins after Delete
// has returned never sees what was there before, also when an error, as that of
// [Cache.Set], names tiers that failed. A tier that can write on condition keeps a
// tombstone for as long as a load may take, so that no other process stores what it
// began to load before (W1).
func (c *Cache[K, V]) Delete(ctx context.Context, key K) error {
	return c.write(ctx, key, "delete", func(ctx context.Context) error {
		return c.writeAll(ctx, key, "delete", repeat[V]{at: tier.Now()})
	})
}

// Expire makes what the tiers hold under the key stale at once: the next Get loads,
// or serves it while it loads, as the policy and the lifetime's stale windows say.
// Without such windows it is Delete.
func (c *Cache[K, V]) Expire(ctx context.Context, key K) error {
	return c.write(ctx, key, "expire", func(ctx context.Context) error {
		if c.table.clearing.Load() > 0 {
			// What is read now and written back could outlive the Clear.
			return c.writeAll(ctx, key, "expire", repeat[V]{at: tier.Now()})
		}
		now := tier.Now()
		return c.eachUp("expire", func(i int, l *level[K, V]) error {
			err := l.bounded(ctx, func(ctx context.Context) error { return c.expireAt(ctx, l, key, now) })
			if err != nil {
				// What cannot be marked must go.
				c.repeatLater(ctx, i, key, repeat[V]{at: now}, err)
			}
			return err
		})
	})
}

// expireAt expires what one level holds. When a condition does not hold somebody has
// written since, which is as good.
func (c *Cache[K, V]) expireAt(ctx context.Context, l *level[K, V], key K, now tier.Instant) error {
	if w, ok := l.repeats.get(key); ok {
		if w.entry != nil {
			w.entry = c.expired(w.entry, now)
			l.repeats.replace(key, w)
		}
		return nil
	}
	var e *tier.Entry[V]
	var version tier.Version
	var err error
	if l.swap != nil {
		e, version, err = l.swap.GetVersion(ctx, key)
	} else {
		e, err = l.store.Get(ctx, key)
	}
	switch {
	case errors.Is(err, tier.ErrUnreadable):
		return c.apply(ctx, l, key, repeat[V]{})
	case err != nil || e == nil || e.FreshUntil() <= now:
		return err
	}
	e = c.expired(e, now)
	ttl := l.remaining(e, now)
	switch {
	case ttl <= 0:
		return c.apply(ctx, l, key, repeat[V]{})
	case l.swap != nil:
		_, err = c.swapIn(ctx, l, key, e, version)
		return err
	default:
		return l.store.Set(ctx, key, e, ttl)
	}
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

// write runs a write of one key behind the fence and in the key's turn.
func (c *Cache[K, V]) write(ctx context.Context, key K, op string, do func(context.Context) error) error {
	if !c.table.keys.Storable(key) {
		return tier.ErrBadKey
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("terrace: cache %q: %s: nothing done: %w", c.name, op, err)
	}
	if !c.life.begin() {
		return ErrClosed
	}
	defer c.life.end()
	ctx, release := c.untilClosed(ctx)
	defer release()
	w := c.table.beginWrite(key)
	defer w.end()
	if err := w.shard.takeTurn(ctx, w.record); err != nil {
		return fmt.Errorf("terrace: cache %q: %s: waiting for another write of the key: %w", c.name, op, err)
	}
	defer w.shard.giveTurn(w.record)
	c.cooldowns.clear(key)
	return do(ctx)
}

// writeAll carries a write to all levels.
func (c *Cache[K, V]) writeAll(ctx context.Context, key K, op string, w repeat[V]) error {
	return c.eachUp(op, func(i int, l *level[K, V]) error {
		err := c.apply(ctx, l, key, w)
		if err != nil {
			c.repeatLater(ctx, i, key, w, err)
		} else {
			c.settled(l, key)
		}
		return err
	})
}

// apply carries a write to one level: an entry where there is one that still lives,
// else a deletion.
func (c *Cache[K, V]) apply(ctx context.Context, l *level[K, V], key K, w repeat[V]) error {
	return l.bounded(ctx, func(ctx context.Context) error {
		ttl := time.Duration(0)
		if w.entry != nil {
			ttl = l.remaining(w.entry, tier.Now())
		}
		switch {
		case ttl > 0 && l.swap != nil:
			return c.setAt(ctx, l, key, w.entry)
		case ttl > 0:
			return l.store.Set(ctx, key, w.entry, ttl)
		case l.swap != nil:
			return l.swap.Bury(ctx, key, c.hold())
		default:
			return l.store.Delete(ctx, key)
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

// hold is how long a tombstone must stay: no load that began before it was written
// may still be on its way to be stored.
func (c *Cache[K, V]) hold() time.Duration {
	return addDurations(c.limits.LoadTimeout, c.storingTime())
}

// eachUp runs a call for each level, from the bottom up, and collects the failures.
func (c *Cache[K, V]) eachUp(op string, call func(int, *level[K, V]) error) error {
	var failed WriteError
	for i := len(c.levels) - 1; i >= 0; i-- {
		l := c.levels[i]
		if err := call(i, l); err != nil {
			c.levelFailed(l, op, err)
			failed.Tiers = append(failed.Tiers, &TierError{Tier: l.name, Op: op, Err: err})
		}
	}
	if failed.Tiers == nil {
		return nil
	}
	return &failed
}
