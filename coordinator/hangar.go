package coordinator

import "sync"

// hangar keeps flights that have ended for those to come. Most flights find their answer
// in a tier; a read of a shared tier then makes no garbage of its flight's size.
type hangar[K comparable, V any] struct {
	pool sync.Pool
}

func (h *hangar[K, V]) get() *flight[K, V] {
	if f, ok := h.pool.Get().(*flight[K, V]); ok {
		return f
	}
	return new(flight[K, V])
}

// put takes a flight back that nobody has a use for any more.
func (h *hangar[K, V]) put(f *flight[K, V]) {
	*f = flight[K, V]{}
	h.pool.Put(f)
}

// letGo ends a hold of a flight, and takes the flight back with the last one, unless
// somebody else may still know of it: a loader, or who waits for one; or Close, which knows
// of those that were under way when it began. A leader whose flight goes on without him
// keeps his hold.
func (c *Cache[K, V]) letGo(f *flight[K, V]) {
	f.shard.mu.Lock()
	f.holds--
	last := f.holds == 0 && f.landed
	f.shard.mu.Unlock()
	if last && f.loading == nil && f.lease == nil && f.node.Load() == nil && !c.life.isClosing() {
		c.table.hangar.put(f)
	}
}
