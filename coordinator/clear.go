package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/terracecache/terrace/tier"
)

// Clear removes all entries of this cache from all tiers, from the bottom up, and
// nothing that belongs to others (S4). A Get in this process that begins after Clear
// has returned sees nothing from before (W1). A tier that cannot clear, or fails to,
// is named in the [WriteError]; this process then trusts nothing that it holds from
// before.
//
// No tier's Timeout bounds it, as a large tier takes its time; the context does.
func (c *Cache[K, V]) Clear(ctx context.Context) error {
	if c.settings.Load().closed {
		return ErrClosed
	}
	c.table.beginClear()
	defer c.table.endClear()
	// Those who are writing end first; what they leave behind to be tried again is
	// from before. While a level is not trusted it is as if it were empty, so that
	// what it lacks can be forgotten; then whoever has begun to try it ends.
	err := c.table.settle(ctx)
	floors := make([]tier.Instant, len(c.levels))
	for i, l := range c.levels {
		floors[i] = tier.Now()
		c.distrust(i, floors[i])
		l.repeats.forgetAll()
	}
	if err == nil {
		err = c.table.settle(ctx)
	}
	if err != nil {
		return fmt.Errorf("terrace: cache %q: clear: waiting for writes under way: %w", c.name, err)
	}
	return c.eachUp("clear", func(i int, l *level[K, V]) error {
		if l.clear == nil {
			return errors.ErrUnsupported
		}
		if err := l.clear.Clear(ctx); err != nil {
			return err
		}
		if l.floor.CompareAndSwap(int64(floors[i]), noFloor) && i == 0 {
			c.retop()
		}
		return nil
	})
}

// distrust keeps this process from trusting what a level holds from before an
// instant.
func (c *Cache[K, V]) distrust(i int, before tier.Instant) {
	l := c.levels[i]
	for {
		floor := l.floor.Load()
		if floor >= int64(before) {
			return
		}
		if l.floor.CompareAndSwap(floor, int64(before)) {
			break
		}
	}
	if i == 0 {
		c.retop()
	}
}
