package lru

import (
	"sync/atomic"

	"github.com/terracecache/terrace/backends/internal/index"
)

// rack is a shard's table with what is known of each of its places.
type rack[K comparable, V any] struct {
	index.Table[K, V]
	uses  []uses // by the place
	links index.Links
}

// uses is when and how the pair in a place was used.
type uses struct {
	movedAt atomic.Uint32 // which of the shard's moves was its last
	used    atomic.Bool   // there was a hit since that moved nothing, and should have
}

func (u *uses) use() {
	if !u.used.Load() {
		u.used.Store(true)
	}
}

func newRack[K comparable, V any](room int) *rack[K, V] {
	t := &rack[K, V]{Table: *index.NewTable[K, V](room, perSpare)}
	t.uses, t.links = make([]uses, t.Last()+1), index.NewLinks(t.Places())
	return t
}

func (t *rack[K, V]) usesOf(p index.Place) *uses { return &t.uses[p] }

const (
	// firstRoom is how many pairs a rack is made for at first.
	firstRoom = 42
	// perSpare is for how many pairs the rack has a place that is free.
	perSpare = 2
)
