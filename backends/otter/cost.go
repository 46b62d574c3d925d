package otter

import (
	"unsafe"

	"github.com/terracecache/terrace/backends/internal/size"
	"github.com/terracecache/terrace/tier"
)

const (
	// nodeHead is what Otter's nodes have beside the key and what is held under it.
	nodeHead = 32
	// places is an entry's part of Otter's hash table, from 17 to 34 bytes, and of its
	// frequency sketch, from 8 to 16.
	places = 37
)

// estimate returns the Cost where none is given.
func estimate[K comparable, V any]() func(K, *tier.Entry[V]) int64 {
	var key K
	node := size.Object(nodeHead+unsafe.Sizeof(key)+unsafe.Sizeof(held[V]{}), true)
	return size.OfEntry[K, V](node + places)
}
