// Package index finds what a tier in memory holds by its key without a lock, and keeps it in
// the order in which it is to go.
package index

import (
	"math/bits"
	"slices"
	"sync/atomic"
)

// Table is a hash table that readers search without a lock, while one writer at a
// time, who holds a lock of the caller's, changes it. It does not move what it holds;
// to grow, the writer fills another one and puts it in its place.
//
// Buckets are as large as a cache line: seven nodes, and a word with a tag of seven bits of
// the hash for each of them, compared all at once. A node whose bucket is full goes
// to another that is not, and the buckets passed over count it, so that a search
// knows where it may stop, and a removal leaves no tombstone. Source of the layout: F14,
// Facebook's folly, 2019; of the comparison: Mycroft, "Determine if a word has a
// zero byte", 1987.
type Table[K comparable, X any] struct {
	buckets []bucket[K, X]
	room    int
	each    int // nodes for which there is a place more than room
}

// Room returns how many nodes the table is meant to hold.
func (t *Table[K, X]) Room() int { return t.room }

type bucket[K comparable, X any] struct {
	// tags has the tag of node i in byte i, 0 where there is none, and in byte 7 how
	// many nodes passed over the bucket; 255 are 255 or more, for ever.
	tags  atomic.Uint64
	nodes [perBucket]atomic.Pointer[Node[K, X]]
}

const (
	perBucket = 7
	passedBit = 8 * perBucket // where the count of those who passed begins
	passedMax = 0xff
	everyByte = 0x0101010101010101
	nodeTops  = 0x0080808080808080 // the top bit of each node's tag
)

// NewTable returns a table that is meant to hold the given number of nodes, and has a place
// more for each so many of them: more places are more memory and a shorter way.
func NewTable[K comparable, X any](room, each int) *Table[K, X] {
	n := (room + room/each + perBucket) / perBucket
	return &Table[K, X]{buckets: make([]bucket[K, X], n), room: room, each: each}
}

// home is the bucket where the search for the hash begins. It takes the high half of
// the hash, spread over the buckets as evenly as over its range.
func (t *Table[K, X]) home(hash uint64) uint64 {
	return (hash >> 32) * uint64(len(t.buckets)) >> 32
}

// after is the bucket where the search goes on when it has looked into i as its so manieth,
// counted from 0. The second lies anywhere, so that those that have no room at home do not
// crowd one region; from there the search goes through all.
func (t *Table[K, X]) after(i uint64, looked int, hash uint64) uint64 {
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
func (*Table[K, X]) tag(hash uint64) uint64 { return hash>>24&0x7f | 0x80 }

// matches returns the top bit of each byte that has the tag. A byte above a match can
// be taken for one as well; the keys tell.
func (*Table[K, X]) matches(tags, tag uint64) uint64 {
	x := tags ^ tag*everyByte
	return (x - everyByte) & ^x & nodeTops
}

// Find returns the key's node, or nil. Anybody may call it at any time.
func (t *Table[K, X]) Find(hash uint64, key K) *Node[K, X] {
	// Most of what is found is the first that has the tag, at home. Who looks there first
	// keeps little more than the arguments across the comparison.
	home := t.home(hash)
	b := &t.buckets[home]
	tags := b.tags.Load()
	if m := t.matches(tags, t.tag(hash)); m != 0 {
		if n := b.nodes[uint(bits.TrailingZeros64(m))/8].Load(); n != nil && n.Key == key {
			return n
		}
		return t.search(hash, key, home, 0)
	}
	if tags>>passedBit == 0 {
		return nil
	}
	return t.search(hash, key, t.after(home, 0, hash), 1)
}

// search is Find from bucket i on, after it has looked into so many.
func (t *Table[K, X]) search(hash uint64, key K, i uint64, looked int) *Node[K, X] {
	tag := t.tag(hash)
	for ; looked <= len(t.buckets); looked++ {
		b := &t.buckets[i]
		tags := b.tags.Load()
		for m := t.matches(tags, tag); m != 0; m &= m - 1 {
			if n := b.nodes[uint(bits.TrailingZeros64(m))/8].Load(); n != nil && n.Key == key {
				return n
			}
		}
		if tags>>passedBit == 0 {
			break
		}
		i = t.after(i, looked, hash)
	}
	return nil
}

// Insert adds a node whose key is not in the table, which must have a place left.
func (t *Table[K, X]) Insert(hash uint64, n *Node[K, X]) {
	i := t.home(hash)
	for looked := 0; ; looked++ {
		b := &t.buckets[i]
		tags := b.tags.Load()
		if free := ^tags & nodeTops; free != 0 {
			at := bits.TrailingZeros64(free) / 8
			b.nodes[at].Store(n) // first, as whoever sees the tag looks for it
			b.tags.Store(tags | t.tag(hash)<<(8*at))
			return
		}
		b.pass(tags, +1)
		i = t.after(i, looked, hash)
	}
}

// Replace puts a node in the place of another of the same key, which must be there.
func (t *Table[K, X]) Replace(hash uint64, old, n *Node[K, X]) {
	b, at := t.place(hash, old)
	b.nodes[at].Store(n)
}

// Remove takes out the node, which must be there, and tells the buckets that it passed over.
func (t *Table[K, X]) Remove(hash uint64, n *Node[K, X]) {
	b, at := t.place(hash, n)
	b.tags.Store(b.tags.Load() &^ (0xff << (8 * at)))
	b.nodes[at].Store(nil)
	i := t.home(hash)
	for looked := 0; &t.buckets[i] != b; looked++ {
		t.buckets[i].pass(t.buckets[i].tags.Load(), -1)
		i = t.after(i, looked, hash)
	}
}

// place returns where the node is, which must be somewhere.
func (t *Table[K, X]) place(hash uint64, n *Node[K, X]) (b *bucket[K, X], at uint) {
	tag := t.tag(hash)
	i := t.home(hash)
	for looked := range len(t.buckets) + 1 {
		b = &t.buckets[i]
		for m := t.matches(b.tags.Load(), tag); m != 0; m &= m - 1 {
			at = uint(bits.TrailingZeros64(m)) / 8
			if b.nodes[at].Load() == n {
				return b, at
			}
		}
		i = t.after(i, looked, hash)
	}
	return nil, 0
}

// pass counts a node that goes to a later bucket, or has left it.
func (b *bucket[K, X]) pass(tags uint64, by int64) {
	if tags>>passedBit < passedMax {
		b.tags.Store(tags + uint64(by)<<passedBit)
	}
}

// Anew returns another table with the same nodes, for more or for fewer, which must have room.
// It is told the hash of each.
func (t *Table[K, X]) Anew(room int, hash func(*Node[K, X]) uint64) *Table[K, X] {
	// Writers wait for this, and each node is a wait for memory. To look at the hashes
	// of some nodes before the first of them is placed lets these waits overlap.
	const atOnce = 4
	var nodes [atOnce * perBucket]*Node[K, X]
	var hashes [atOnce * perBucket]uint64
	anew := NewTable[K, X](room, t.each)
	for buckets := range slices.Chunk(t.buckets, atOnce) {
		found := 0
		for i := range buckets {
			for j := range buckets[i].nodes {
				if n := buckets[i].nodes[j].Load(); n != nil {
					nodes[found] = n
					found++
				}
			}
		}
		for i, n := range nodes[:found] {
			hashes[i] = hash(n)
		}
		for i, n := range nodes[:found] {
			anew.Insert(hashes[i], n)
		}
	}
	return anew
}
