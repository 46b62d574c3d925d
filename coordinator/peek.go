package coordinator

import (
	"context"

	"github.com/terracecache/terrace/tier"
)

// Peek returns what the tiers have for the key, stale or not, and changes nothing:
// it loads, refreshes, fills and counts nothing. With nothing usable the error is
// [ErrMiss].
func (c *Cache[K, V]) Peek(ctx context.Context, key K) (Result[V], error) {
	if c.settings.Load().closed {
		return Result[V]{}, ErrClosed
	}
	if !c.table.keys.Storable(key) {
		return Result[V]{}, tier.ErrBadKey
	}
	for i := range c.levels {
		e, _, _ := c.look(ctx, i, key)
		if now := tier.Now(); e != nil && now < e.UsableUntil() {
			a := answer[V]{entry: e, source: i}
			return c.result(&a, a.state()), nil
		}
	}
	if err := ctx.Err(); err != nil {
		return Result[V]{}, err
	}
	return Result[V]{}, ErrMiss
}
