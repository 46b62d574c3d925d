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
			c.repeatLater(i, f.key, repeat[V]{entry: e, conditional: l.swap != nil, seen: seen}, err)
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
			// The level could not be read before the load. Only what is older than
			// the load may be overwritten.
			there, version, err := l.swap.GetVersion(ctx, key)
			if err != nil && !errors.Is(err, tier.ErrUnreadable) {
				return err
			}
			if there == nil && err == nil && version != (tier.Version{}) || there != nil && there.LoadedAt() >= e.LoadedAt() {
				return nil // deleted at a time that cannot be told, or newer
			}
			seen.version = version
		}
		stored, err = l.swap.SetIf(ctx, key, e, ttl, seen.version)
		return err
	})
	return stored, err
}

// withdraw takes a loaded entry away from the levels that had it already when a
// level above refused it.
func (c *Cache[K, V]) withdraw(ctx context.Context, key K, from int) {
	for i := from; i < len(c.levels); i++ {
		l := c.levels[i]
		err := l.bounded(ctx, func(ctx context.Context) error { return l.store.Delete(ctx, key) })
		if err != nil {
			c.levelFailed(l, "delete", err)
			c.repeatLater(i, key, repeat[V]{}, err)
		} else {
			c.settled(l, key)
		}
	}
}
