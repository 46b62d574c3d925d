package lru

import (
	"github.com/hashicorp/golang-lru/arc/v2"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/terracecache/terrace/tier"
)

// evictor is what golang-lru's three have in common.
type evictor[K comparable, V any] interface {
	Get(K) (*tier.Pair[K, V], bool)
	Contains(K) bool
	Add(K, *tier.Pair[K, V])
	Remove(K)
	Len() int
}

// newEvictor returns an evictor that never holds more than capacity entries, which
// is 1 or more. Of a single pair all kinds make the same.
func newEvictor[K comparable, V any](e Eviction, capacity int) evictor[K, V] {
	// The constructors' only errors are about sizes below 1.
	switch {
	case e == TwoQueue && capacity > 1:
		c, _ := lru.New2Q[K, *tier.Pair[K, V]](capacity) // keeps capacity/2 ghosts, so 1 is too few
		return c
	case e == ARC && capacity > 1:
		// An ARC can hold one more than its size: when the recent entries fill it, and
		// a ghost returns as a frequent one.
		c, _ := arc.NewARC[K, *tier.Pair[K, V]](capacity - 1)
		return c
	default:
		c, _ := simplelru.NewLRU[K, *tier.Pair[K, V]](capacity, nil)
		return plain[K, V]{c}
	}
}

// plain makes an evictor of the plain LRU, whose methods return more.
type plain[K comparable, V any] struct {
	*simplelru.LRU[K, *tier.Pair[K, V]]
}

func (p plain[K, V]) Add(key K, pair *tier.Pair[K, V]) { p.LRU.Add(key, pair) }

func (p plain[K, V]) Remove(key K) { p.LRU.Remove(key) }
