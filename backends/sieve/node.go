package sieve

import (
	"sync/atomic"

	"github.com/terracecache/terrace/tier"
)

// node is an entry with its bookkeeping, in one object. What a hit reads stands
// first; only visited changes once the node can be found.
type node[K comparable, V any] struct {
	key     K
	visited atomic.Uint32 // 1 when there was a hit since the hand last came by
	window  bool          // in the window, not in the main queue; of the shard's lock
	entry   tier.Entry[V]

	// Of the shard's lock.
	hash       uint64
	prev, next *node[K, V] // prev is newer
}

// visit notes a hit. It looks before it writes: nearly always there is nothing to
// do, and then cores share the line.
func (n *node[K, V]) visit() {
	if n.visited.Load() == 0 {
		n.visited.Store(1)
	}
}
