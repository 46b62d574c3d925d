// Package index finds what a tier in memory holds by its key without a lock, and keeps the
// order in which it is to go.
package index

import (
	"math/bits"
	"sync/atomic"

	"github.com/terracecache/terrace/tier"
)

// Table is a hash table of pairs that readers search without a lock, while one writer at a
// time, who holds a lock of the caller's, changes it. It does not move what it holds; to
// grow, the writer fills another one and puts it in its place.
//
// Buckets are as large as a cache line: seven pairs, and a word with a tag of seven bits of
// the hash for each of them, compared all at once. A pair whose bucket is full goes
// to another that is not, and the buckets passed over count it, so that a search
// knows where it may stop, and a removal leaves no tombstone. Source of the layout: F14,
// Facebook's folly, 2019; of the comparison: Mycroft, "Determine if a word has a
// zero byte", 1987.
type Table[K comparable, V any] struct {
	buckets []bucket[K, V]
	room    int
	each    int // pairs for which there is a place more than room
}

// Place is where in a table a pair is; zero is nowhere. What is known of a pair beside its
// entry is kept in arrays by its place, so that another pair of the same key, put in the
// first one's place, has all of it.
type Place uint32

// Room returns how many pairs the table is meant to hold.
func (t *Table[K, V]) Room() int { return t.room }

// Places returns how many places there are.
func (t *Table[K, V]) Places() int { return perBucket * len(t.buckets) }

// Last returns the greatest place that there is.
func (t *Table[K, V]) Last() Place { return placeOf(uint64(len(t.buckets)-1), perBucket-1) }

// Number returns the place's, of those from 0 to Places.
func (p Place) Number() uint { return uint(p - p/(perBucket+1) - 1) }

// placeOf is the inverse of Number.
func placeOf(bucket uint64, at uint) Place { return Place(bucket*(perBucket+1) + uint64(at) + 1) }

func (p Place) bucket() uint { return uint(p) / (perBucket + 1) }
func (p Place) at() uint     { return uint(p)%(perBucket+1) - 1 }

type bucket[K comparable, V any] struct {
	// tags has the tag of pair i in byte i, 0 where there is none, and in byte 7 how
	// many pairs passed over the bucket; 255 are 255 or more, for ever.
	tags  atomic.Uint64
	pairs [perBucket]atomic.Pointer[tier.Pair[K, V]]
}

const (
	perBucket = 7
	passedBit = 8 * perBucket // where the count of those who passed begins
	passedMax = 0xff
	everyByte = 0x0101010101010101
	pairTops  = 0x0080808080808080 // the top bit of each pair's tag
)

// MostRoom is how many pairs a table has places for at most, so that a Place has room for all.
const MostRoom = 1 << 30

// NewTable returns a table that is meant to hold the given number of pairs, and has a place
// more for each so many of them: more places are more memory and a shorter way.
func NewTable[K comparable, V any](room, each int) *Table[K, V] {
	room = min(room, MostRoom)
	n := (room + room/each + perBucket) / perBucket
	return &Table[K, V]{buckets: make([]bucket[K, V], n), room: room, each: each}
}

// home is the bucket where the search for the hash begins. It takes the high half of
// the hash, spread over the buckets as evenly as over its range.
func (t *Table[K, V]) home(hash uint64) uint64 {
	return (hash >> 32) * uint64(len(t.buckets)) >> 32
}

// after is the bucket where the search goes on when it has looked into i as its so manieth,
// counted from 0. The second lies anywhere, so that those that have no room at home do not
// crowd one region; from there the search goes through all.
func (t *Table[K, V]) after(i uint64, looked int, hash uint64) uint64 {
	if looked == 0 {
		const spread = 0x9E3779B97F4A7C15 // 2^64 by the golden ratio: all bits move up into the home
		return t.home(hash * spread)
	}
	if i++; i == uint64(len(t.buckets)) {
		i = 0
	}
	return i
}

// tag takes bits of the hash that neither home nor the choice of a shard uses. The top bit
// tells it from an empty place. It is a method, as matches is, for the compiler does not
// inline a function without type parameters into what other packages make of Find.
func (*Table[K, V]) tag(hash uint64) uint64 { return hash>>24&0x7f | 0x80 }

// matches returns the top bit of each byte that has the tag. A byte above a match can
// be taken for one as well; the keys tell.
func (*Table[K, V]) matches(tags, tag uint64) uint64 {
	x := tags ^ tag*everyByte
	return (x - everyByte) & ^x & pairTops
}

// Find returns the key's pair and its place, or nil. Anybody may call it at any time.
func (t *Table[K, V]) Find(hash uint64, key K) (*tier.Pair[K, V], Place) {
	// Most of what is found is the first that has the tag, at home. Who looks there first
	// keeps little more than the arguments across the comparison.
	home := t.home(hash)
	b := &t.buckets[home]
	tags := b.tags.Load()
	if m := t.matches(tags, t.tag(hash)); m != 0 {
		at := uint(bits.TrailingZeros64(m)) / 8
		if p := b.pairs[at].Load(); p != nil && p.Key() == key {
			return p, placeOf(home, at)
		}
		return t.search(hash, key, home, 0)
	}
	if tags>>passedBit == 0 {
		return nil, 0
	}
	return t.search(hash, key, t.after(home, 0, hash), 1)
}

// search is Find from bucket i on, after it has looked into so many.
func (t *Table[K, V]) search(hash uint64, key K, i uint64, looked int) (*tier.Pair[K, V], Place) {
	tag := t.tag(hash)
	for ; looked <= len(t.buckets); looked++ {
		b := &t.buckets[i]
		tags := b.tags.Load()
		for m := t.matches(tags, tag); m != 0; m &= m - 1 {
			at := uint(bits.TrailingZeros64(m)) / 8
			if p := b.pairs[at].Load(); p != nil && p.Key() == key {
				return p, placeOf(i, at)
			}
		}
		if tags>>passedBit == 0 {
			break
		}
		i = t.after(i, looked, hash)
	}
	return nil, 0
}

// At returns the pair at the place, which may hold none.
func (t *Table[K, V]) At(p Place) *tier.Pair[K, V] { return t.slot(p).Load() }

func (t *Table[K, V]) slot(p Place) *atomic.Pointer[tier.Pair[K, V]] {
	return &t.buckets[p.bucket()].pairs[p.at()]
}

// Insert adds a pair whose key is not in the table, which must have a place left, and
// returns where.
func (t *Table[K, V]) Insert(hash uint64, pair *tier.Pair[K, V]) Place {
	i := t.home(hash)
	for looked := 0; ; looked++ {
		b := &t.buckets[i]
		tags := b.tags.Load()
		if free := ^tags & pairTops; free != 0 {
			at := uint(bits.TrailingZeros64(free)) / 8
			b.pairs[at].Store(pair) // first, as whoever sees the tag looks for it
			b.tags.Store(tags | t.tag(hash)<<(8*at))
			return placeOf(i, at)
		}
		b.pass(tags, +1)
		i = t.after(i, looked, hash)
	}
}

// Replace puts a pair in the place of another of the same key, if that is still there, and
// reports whether it was. It needs no lock.
func (t *Table[K, V]) Replace(p Place, old, pair *tier.Pair[K, V]) bool {
	return t.slot(p).CompareAndSwap(old, pair)
}

// Remove takes out the pair at the place, which must hold one with the hash, and tells the
// buckets that it passed over.
func (t *Table[K, V]) Remove(hash uint64, p Place) {
	b := &t.buckets[p.bucket()]
	b.tags.Store(b.tags.Load() &^ (0xff << (8 * p.at())))
	b.pairs[p.at()].Store(nil)
	i := t.home(hash)
	for looked := 0; &t.buckets[i] != b; looked++ {
		t.buckets[i].pass(t.buckets[i].tags.Load(), -1)
		i = t.after(i, looked, hash)
	}
}

// pass counts a pair that goes to a later bucket, or has left it.
func (b *bucket[K, V]) pass(tags uint64, by int64) {
	if tags>>passedBit < passedMax {
		b.tags.Store(tags + uint64(by)<<passedBit)
	}
}

// Each calls f for each place that holds a pair.
func (t *Table[K, V]) Each(f func(p Place)) {
	for i := range t.buckets {
		for at := range t.buckets[i].pairs {
			if t.buckets[i].pairs[at].Load() != nil {
				f(placeOf(uint64(i), uint(at)))
			}
		}
	}
}

// Seal returns the pair at the place, which must hold one, and leaves a copy there for those
// who still read this table: no Replace from now on can know what is in the place but by
// finding the copy.
func (t *Table[K, V]) Seal(p Place) *tier.Pair[K, V] {
	for slot := t.slot(p); ; {
		pair := slot.Load()
		if sealed := *pair; slot.CompareAndSwap(pair, &sealed) {
			return pair
		}
	}
}
