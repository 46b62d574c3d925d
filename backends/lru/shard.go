package lru

import "github.com/terracecache/terrace/tier"

// shard is a part of the entries. Methods that return open report false when it is
// closed.
type shard[K comparable, V any] interface {
	get(hash uint64, key K) (pair *tier.Pair[K, V], open bool)
	set(hash uint64, pair *tier.Pair[K, V]) (open bool)
	remove(hash uint64, key K) (open bool)
	clear() (open bool)
	close()
	resize(capacity int) (open bool) // of an LRU
	usage() (held, capacity, evicted int64)
}
