package sieve

import (
	"sync/atomic"
	"unsafe"

	"github.com/terracecache/terrace/backends/internal/index"
	"github.com/terracecache/terrace/tier"
)

// node is what the table holds: the head of a holder or of a pointer.
//
// A new key's entry is kept inside its node, so that it costs no object of its own and a hit
// one look into memory less. It stays as it is, since a reader may have it. One that is
// written again gets a node that leads to the entry: from then on a Set of the key changes
// that pointer and nothing else, neither the table nor the queue, with the nodes beside it,
// which others read.
//
// Source: otter, which keeps values so, as of v2.4.
type (
	holder[K comparable, V any] struct {
		index.Node[K, record]
		entry tier.Entry[V]
	}
	pointer[K comparable, V any] struct {
		index.Node[K, record]
		entry atomic.Pointer[tier.Entry[V]]
	}
)

// record is what a node of either kind holds besides its key. Only visited changes once the
// node can be found, and window, which no reader looks at.
type record struct {
	visited atomic.Uint32 // 1 when there was a hit since the hand last came by
	points  bool          // it is the head of a pointer
	window  bool          // in the window, not in the main queue; of the shard's lock

	hash uint64
}

func newHolder[K comparable, V any](key K, hash uint64, entry *tier.Entry[V]) *index.Node[K, record] {
	n := &holder[K, V]{entry: *entry}
	n.Key, n.Item.hash = key, hash
	return &n.Node
}

func newPointer[K comparable, V any](key K, hash uint64, entry *tier.Entry[V]) *index.Node[K, record] {
	n := new(pointer[K, V])
	n.entry.Store(entry)
	n.Key, n.Item.hash, n.Item.points = key, hash, true
	return &n.Node
}

// pointerOf returns the pointer that the node, which must say so, is the head of.
func pointerOf[K comparable, V any](n *index.Node[K, record]) *atomic.Pointer[tier.Entry[V]] {
	return &(*pointer[K, V])(unsafe.Pointer(n)).entry
}

// renew has the node, which must be the head of a pointer, lead to another entry.
func renew[K comparable, V any](n *index.Node[K, record], entry *tier.Entry[V]) {
	pointerOf[K, V](n).Store(entry)
	n.Item.visit()
}

func entryOf[K comparable, V any](n *index.Node[K, record]) *tier.Entry[V] {
	if n.Item.points {
		return pointerOf[K, V](n).Load()
	}
	return &(*holder[K, V])(unsafe.Pointer(n)).entry
}

// visit notes a hit. It looks before it writes: nearly always there is nothing to
// do, and then cores share the line.
func (r *record) visit() {
	if r.visited.Load() == 0 {
		r.visited.Store(1)
	}
}

func hashOf[K comparable](n *index.Node[K, record]) uint64 { return n.Item.hash }
