package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Clear removes all entries of this cache from all tiers, from the bottom up, and
// nothing that belongs to others (S4). A Get in this process that begins after Clear
// has returned sees nothing from before (W1). A tier that cannot clear, or fails to,
// is named in the [WriteError]; this process then trusts nothing that it holds from
// before, and does not try again. Loads that are under way in other processes may
// still store what they began to load before (docs/guarantees.md).
//
// No tier's Timeout bounds it, as a large tier takes its time; the context does.
func (c *Cache[K, V]) Clear(ctx context.Context) error {
	if c.settings.Load().closed {
		return ErrClosed
	}
	if !c.life.begin() {
		return ErrClosed
	}
	defer c.life.end()
	c.table.beginClear()
	defer c.table.endClear()
	// Those who are writing end first; what they leave behind to be tried again is
	// from before. Then a level is not trusted, as if it were empty, and what it
	// lacks need only be deleted; and whoever has begun to try something else ends.
	if err := c.table.settle(ctx); err != nil {
		return fmt.Errorf("terrace: cache %q: clear: waiting for writes under way: %w", c.name, err)
	}
	began := tier.Now()
	for i, l := range c.levels {
		c.distrust(i, began)
		l.repeats.becomeDeletions(began)
	}
	ctx, release := c.untilClosed(ctx)
	if release != nil {
		defer release()
	}
	unsettled := c.table.settle(ctx)
	defer c.bus.wroteAll()
	return c.eachUp("clear", func(i int, l *level[K, V]) error {
		if unsettled != nil {
			return unsettled
		}
		if l.clear == nil {
			return errors.ErrUnsupported
		}
		if err := l.clear.Clear(ctx); err != nil {
			return err
		}
		l.repeats.forget(began)
		l.floor.CompareAndSwap(int64(began), noFloor)
		if i == 0 {
			c.retop()
		}
		return nil
	})
}

// distrust keeps this process from trusting what a level holds from before an
// instant. What another process has written is as exact as its wall clock.
func (c *Cache[K, V]) distrust(i int, before tier.Instant) {
	l := c.levels[i]
	for {
		floor := l.floor.Load()
		if floor >= int64(before) {
			return
		}
		l.floorEnd.Store(int64(before.Add(c.longestIn(l))))
		if l.floor.CompareAndSwap(floor, int64(before)) {
			break
		}
	}
	if i == 0 {
		c.retop()
	}
}

// trusts reports whether an entry is from after what the level is not trusted for, as a
// whole or of its key. It trusts the level again when all from before must be dead.
func (c *Cache[K, V]) trusts(i int, key K, e *tier.Entry[V]) bool {
	l := c.levels[i]
	if floor := l.floor.Load(); floor != noFloor && !c.isAbove(i, floor, e) {
		return false
	}
	f := l.repeats.forgotten.Load()
	return f == nil || c.isRemembered(i, f, key, e)
}

func (c *Cache[K, V]) isAbove(i int, floor int64, e *tier.Entry[V]) bool {
	l := c.levels[i]
	if tier.Now() > tier.Instant(l.floorEnd.Load()) && l.floor.CompareAndSwap(floor, noFloor) && i == 0 {
		c.retop()
	}
	return e.LoadedAt() > tier.Instant(floor)
}

// isRemembered reports whether no write that was forgotten may be newer than the entry.
func (c *Cache[K, V]) isRemembered(i int, f *forgotten[K], key K, e *tier.Entry[V]) bool {
	if now := tier.Now(); f.isOver(now) && c.levels[i].repeats.trustAgain(now) && i == 0 {
		c.retop()
	}
	return !f.doubts(key, e.LoadedAt())
}

// longestIn returns the longest life that an entry in the level may have. In a shared
// level others may have given it a longer one than this process ever does.
func (c *Cache[K, V]) longestIn(l *level[K, V]) time.Duration {
	if !l.local {
		return tier.Forever
	}
	return min(l.ttl, time.Duration(c.longest.Load()))
}
