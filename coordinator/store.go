package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/terracecache/terrace/tier"
)

// storeLoaded writes a loaded entry to all levels from the bottom up (W5), unless a
// write overlapped with the load: here, which the fence tells, or in another
// process, which a level that writes on condition tells (W1). An entry that is not
// to be kept takes what is there away instead.
func (c *Cache[K, V]) storeLoaded(ctx context.Context, f *flight[K, V], pair *tier.Pair[K, V], keep bool) {
	x := &f.finding
	c.beforeStore(f)
	if !f.claimWait(ctx) {
		c.counts.fenced.Add(1)
		return
	}
	defer f.shard.giveTurn(f.record)
	for i := len(c.levels) - 1; i >= 0; i-- {
		l := c.levels[i]
		stored, err := c.storeAt(ctx, l, pair, keep, x.at(i))
		if c.lessor != nil && i == c.lessor.at {
			f.leaseOverwritten() // or will be, by the write that is tried again
		}
		switch {
		case err != nil:
			c.levelFailed(l, "store", err)
			w := repeat[K, V]{at: pair.Entry().LoadedAt(), loaded: true}
			if keep {
				w.pair, w.seen = pair, x.at(i)
			}
			c.repeatLater(ctx, i, f.key, w, err)
		case !stored:
			c.counts.fenced.Add(1)
			c.withdraw(ctx, f.key, i+1)
			return
		default:
			c.settled(l, f.key)
		}
	}
}

// storeAt writes an entry that was loaded, or found below, to one level, or takes
// away what is there when it is not to be kept or its life is over. It reports false
// without an error when somebody has written there since the flight has seen it,
// which only a level that writes on condition can tell.
func (c *Cache[K, V]) storeAt(ctx context.Context, l *level[K, V], pair *tier.Pair[K, V], keep bool, seen sighting) (stored bool, err error) {
	key, e := pair.Key(), pair.Entry()
	if l.swap == nil {
		switch {
		case l.local && keep:
			return true, l.setLocal(ctx, pair)
		case l.local:
			return true, l.store.Delete(ctx, key)
		}
		ttl := time.Duration(0)
		if keep {
			ttl = l.remaining(e, tier.Now())
		}
		err = l.bounded(ctx, func(ctx context.Context) error { return l.store.Set(ctx, key, e, ttl) })
		return true, err
	}
	ttl := l.remaining(e, tier.Now())
	if !keep {
		ttl = 0
	}
	err = l.bounded(ctx, func(ctx context.Context) (err error) {
		switch {
		case ttl > 0 && seen.known:
			stored, err = c.swapIn(ctx, l, key, e, seen.version)
			return err
		case ttl > 0:
			stored, err = c.storeOverOlder(ctx, l, key, e)
			return err
		case !seen.known:
			there, newer, err := l.sightingOf(ctx, key, e.LoadedAt())
			if newer || err != nil {
				return err
			}
			seen = there
		}
		stored = true
		if !seen.holds {
			return nil
		}
		return c.removeOlder(ctx, l, key, e.LoadedAt())
	})
	return stored, err
}

// errOutrun is why an entry is not stored that is newer than all that was seen.
var errOutrun = errors.New("others write the key as fast as it can be read")

// storeOverOlder writes an entry to a level that writes on condition and could not be read
// before the load: only what is older than the load may be overwritten. What others write
// between the look and the write may be older too, as a write that they try again is, and
// is looked at as well. It reports false without an error when something newer is there.
func (c *Cache[K, V]) storeOverOlder(ctx context.Context, l *level[K, V], key K, e *tier.Entry[V]) (stored bool, err error) {
	for range 3 {
		seen, newer, err := l.sightingOf(ctx, key, e.LoadedAt())
		if newer || err != nil {
			return false, err
		}
		if stored, err := c.swapIn(ctx, l, key, e, seen.version); stored || err != nil {
			return stored, err
		}
	}
	return false, errOutrun
}

// swapIn writes an entry to a level that still holds the given version, or nothing.
//
// Nothing is as good because a deletion leaves a tombstone, and an entry stays at
// least as long as a tombstone would, for as long as a load may take: what has gone
// by itself was not overtaken. The entry's own time ends it for readers.
func (c *Cache[K, V]) swapIn(ctx context.Context, l *level[K, V], key K, e *tier.Entry[V], version tier.Version) (stored bool, err error) {
	now := tier.Now()
	life := l.remaining(e, now)
	e = e.Capped(now.Add(life))
	ttl := max(life, c.hold())
	stored, err = l.swap.SetIf(ctx, key, e, ttl, version)
	if err == nil && !stored && version != (tier.Version{}) {
		stored, err = l.swap.SetIf(ctx, key, e, ttl, tier.Version{})
	}
	return stored, err
}

// sightingOf reads what a level that writes on condition holds, for a write that
// began at the given time, and reports whether that is newer: an entry whose load
// began later, or the tombstone of a later Delete.
func (l *level[K, V]) sightingOf(ctx context.Context, key K, began tier.Instant) (seen sighting, newer bool, err error) {
	e, version, err := l.swap.GetVersion(ctx, key)
	unreadable := errors.Is(err, tier.ErrUnreadable)
	if err != nil && !unreadable {
		return sighting{}, false, err
	}
	at, ok := version.Time()
	return sighting{known: true, version: version, holds: e != nil || unreadable}, ok && at > began, nil
}

// withdraw takes a loaded entry away from the levels that had it already when a
// level above refused it.
func (c *Cache[K, V]) withdraw(ctx context.Context, key K, from int) {
	for i := from; i < len(c.levels); i++ {
		l := c.levels[i]
		w := repeat[K, V]{at: tier.Now()}
		if err := c.apply(ctx, l, key, nil, w.at); err != nil {
			c.levelFailed(l, "delete", err)
			c.repeatLater(ctx, i, key, w, err)
		} else {
			c.settled(l, key)
		}
	}
}
