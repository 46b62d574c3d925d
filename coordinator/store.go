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
func (c *Cache[K, V]) storeLoaded(ctx context.Context, f *flight[K, V], x *finding[V], e *tier.Entry[V], keep bool) {
	if !f.claimWait(ctx) {
		c.counts.fenced.Add(1)
		return
	}
	defer f.shard.giveTurn(f.record)
	for i := len(c.levels) - 1; i >= 0; i-- {
		l := c.levels[i]
		var seen sighting
		if x.seen != nil {
			seen = x.seen[i]
		}
		ttl := l.remaining(e, tier.Now())
		if !keep {
			if seen.holdsNothing() && l.swap != nil {
				continue
			}
			ttl = 0
		}
		stored, err := c.storeAt(ctx, l, f.key, e, ttl, seen)
		switch {
		case err != nil:
			c.levelFailed(l, "store", err)
			c.repeatLater(i, f.key, repeat[V]{entry: e, at: e.LoadedAt(), seen: seen}, err)
		case !stored:
			c.counts.fenced.Add(1)
			c.withdraw(ctx, f.key, i+1)
			return
		default:
			c.settled(l, f.key)
		}
	}
}

// storeAt writes an entry to one level and reports whether it did. Only a level
// that writes on condition may refuse without an error: somebody wrote there since
// the flight has read it.
func (c *Cache[K, V]) storeAt(ctx context.Context, l *level[K, V], key K, e *tier.Entry[V], ttl time.Duration, seen sighting) (stored bool, err error) {
	err = l.bounded(ctx, func(ctx context.Context) error {
		if l.swap == nil {
			stored = true
			return l.store.Set(ctx, key, e, ttl)
		}
		if !seen.known {
			var newer bool
			if seen, newer, err = l.sightingOf(ctx, key, e.LoadedAt()); newer || err != nil {
				return err
			}
		}
		stored, err = l.swap.SetIf(ctx, key, e, ttl, seen.version)
		return err
	})
	return stored, err
}

// sightingOf reads what a level that writes on condition holds, for a write that
// began at the given time, and reports whether that is newer: an entry whose load
// began later, or the tombstone of a later Delete.
func (l *level[K, V]) sightingOf(ctx context.Context, key K, began tier.Instant) (seen sighting, newer bool, err error) {
	_, version, err := l.swap.GetVersion(ctx, key)
	if err != nil && !errors.Is(err, tier.ErrUnreadable) {
		return sighting{}, false, err
	}
	at, ok := version.Time()
	return sighting{known: true, version: version}, ok && at > began, nil
}

// withdraw takes a loaded entry away from the levels that had it already when a
// level above refused it.
func (c *Cache[K, V]) withdraw(ctx context.Context, key K, from int) {
	for i := from; i < len(c.levels); i++ {
		l := c.levels[i]
		err := l.bounded(ctx, func(ctx context.Context) error { return l.store.Delete(ctx, key) })
		if err != nil {
			c.levelFailed(l, "delete", err)
			c.repeatLater(i, key, repeat[V]{at: tier.Now()}, err)
		} else {
			c.settled(l, key)
		}
	}
}
