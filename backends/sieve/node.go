package sieve

import (
	"sync/atomic"

	"github.com/terracecache/terrace/backends/internal/index"
	"github.com/terracecache/terrace/tier"
)

// record is what a node holds besides its key. What a hit reads stands first; only
// visited changes once the node can be found.
type record[K comparable, V any] struct {
	visited atomic.Uint32 // 1 when there was a hit since the hand last came by
	window  bool          // in the window, not in the main queue; of the shard's lock
	entry   tier.Entry[V]

	hash uint64
}

func newNode[K comparable, V any](key K, hash uint64, entry *tier.Entry[V]) *index.Node[K, record[K, V]] {
	n := &index.Node[K, record[K, V]]{Key: key}
	n.Item.entry, n.Item.hash = *entry, hash
	return n
}

// visit notes a hit. It looks before it writes: nearly always there is nothing to
// do, and then cores share the line.
func (r *record[K, V]) visit() {
	if r.visited.Load() == 0 {
		r.visited.Store(1)
	}
}

func hashOf[K comparable, V any](n *index.Node[K, record[K, V]]) uint64 { return n.Item.hash }
