package coordinator

import "sync"

// hangar keeps flights that have ended for those to come. Most flights find their answer
// in a tier before anybody has joined them; a read of a shared tier then makes no garbage
// of its flight's size.
type hangar[K comparable, V any] struct {
	pool sync.Pool
}

func (h *hangar[K, V]) get() *flight[K, V] {
	if f, ok := h.pool.Get().(*flight[K, V]); ok {
		return f
	}
	return new(flight[K, V])
}

// put takes a flight back that only its leader knows of, who has no more use for it.
func (h *hangar[K, V]) put(f *flight[K, V]) {
	*f = flight[K, V]{}
	h.pool.Put(f)
}

// recycle takes back a flight that has landed, unless somebody may still know of it: who
// has joined it, for whom there is a channel to wait on; a loader, or who waits for one;
// or Close, which knows of those that were under way when it began.
func (c *Cache[K, V]) recycle(f *flight[K, V]) {
	if f.done == nil && f.loading == nil && f.lease == nil && f.node.Load() == nil && !c.life.isClosing() {
		c.table.hangar.put(f)
	}
}
