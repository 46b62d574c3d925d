package ristretto

import (
	"math/bits"
	"sync/atomic"
)

// shortcuts lead from a hash of a shard to the item that Ristretto holds under it. Sets of
// keys that are held go this way, as to ask Ristretto is half of what they would cost: each
// Get is noted as a use for its policy to work off, beside two looks into a map. (A Set of a
// held key is no use to Ristretto itself either.)
//
// An item has at most one place, by its hash, and who comes later takes it. Items are put in
// with the shard's mu held, and take themselves out as soon as Ristretto lets them go, so
// that none is kept alive here.
type shortcuts[K comparable, V any] struct {
	places atomic.Pointer[[]atomic.Pointer[item[K, V]]]
}

// fewestPlaces is how many places a shard has at first.
const fewestPlaces = 8

// place returns the hash's place, or nil if there are none.
func (c *shortcuts[K, V]) place(hash uint64) *atomic.Pointer[item[K, V]] {
	places := c.places.Load()
	if places == nil {
		return nil
	}
	return &(*places)[hash/shards&uint64(len(*places)-1)] // the shard is chosen by what is left
}

// find returns the key's item, if Ristretto holds it and its place is its own.
func (c *shortcuts[K, V]) find(hash uint64, key K) *item[K, V] {
	place := c.place(hash)
	if place == nil {
		return nil
	}
	it := place.Load()
	if it == nil || it.key != key || it.state.Load() != counted {
		return nil
	}
	return it
}

// keep puts in an item, of a store that holds so many.
func (c *shortcuts[K, V]) keep(hash uint64, it *item[K, V], entries int64) {
	c.grow(int(entries / shards))
	place := c.place(hash)
	place.Store(it)
	if it.state.Load() != counted { // gone meanwhile, perhaps before it was in its place
		place.CompareAndSwap(it, nil)
	}
}

// grow makes places for so many items. What is in those before is left to be found anew.
func (c *shortcuts[K, V]) grow(items int) {
	old, n := c.places.Load(), fewestPlaces
	if items > fewestPlaces {
		n = 1 << bits.Len(uint(items-1))
	}
	if old == nil || len(*old) < n {
		places := make([]atomic.Pointer[item[K, V]], n)
		c.places.Store(&places)
	}
}

// drop takes out all, and gives back the places.
func (c *shortcuts[K, V]) drop() { c.places.Store(nil) }

// forget takes out an item that is gone, as its state must say. Anybody may call it.
func (c *shortcuts[K, V]) forget(hash uint64, it *item[K, V]) {
	if place := c.place(hash); place != nil {
		place.CompareAndSwap(it, nil)
	}
}
