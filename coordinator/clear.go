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
	for _, l := range c.levels {
		l.repeats.forgetAll()
	}
	if err := c.table.settle(ctx); err != nil {
		for i := range c.levels {
			c.distrust(i, tier.Now())
		}
		return fmt.Errorf("terrace: cache %q: clear: waiting for writes under way: %w", c.name, err)
	}
	return c.eachUp("clear", func(i int, l *level[K, V]) error {
		floor := l.floor.Load()
		err := error(errors.ErrUnsupported)
		if l.clear != nil {
			err = l.clear.Clear(ctx)
		}
		if err != nil {
			c.distrust(i, tier.Now())
		} else if l.floor.CompareAndSwap(floor, noFloor) && i == 0 {
			c.retop()
		}
		return err
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
