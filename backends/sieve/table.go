package sieve

import (
	"math/bits"
	"slices"
	"sync/atomic"
)

// table is a hash table that readers search without a lock, while one writer at a
// time, who holds the shard's lock, changes it. It does not move what it holds; to
// grow, the writer fills another one and puts it in its place.
//
// Buckets are as large as a cache line: seven nodes, and a word with a tag of seven bits of
// the hash for each of them, compared all at once. A node whose bucket is full goes
// to the next that is not, and the buckets passed over count it, so that a search
// knows where it may stop, and a removal leaves no tombstone. Source of the layout: F14,
// Facebook's folly, 2019; of the comparison: Mycroft, "Determine if a word has a
// zero byte", 1987.
type table[K comparable, V any] struct {
	buckets []bucket[K, V]
	room    int // nodes that it is meant to hold
}

type bucket[K comparable, V any] struct {
	// tags has the tag of node i in byte i, 0 where there is none, and in byte 7 how
	// many nodes passed over the bucket; 255 are 255 or more, for ever.
	tags  atomic.Uint64
	nodes [perBucket]atomic.Pointer[node[K, V]]
}

const (
	perBucket = 7
	passedBit = 8 * perBucket // where the count of those who passed begins
	passedMax = 0xff
	everyByte = 0x0101010101010101
	nodeTops  = 0x0080808080808080 // the top bit of each node's tag
)

// newTable returns a table for the given number of nodes, of which three in four
// places are then taken.
func newTable[K comparable, V any](room int) *table[K, V] {
	n := (room*4/3 + perBucket - 1) / perBucket
	return &table[K, V]{buckets: make([]bucket[K, V], max(1, n)), room: room}
}

// home is the bucket where the search for the hash begins. It takes the high half of
// the hash, spread over the buckets as evenly as over its range.
func (t *table[K, V]) home(hash uint64) uint64 {
	return (hash >> 32) * uint64(len(t.buckets)) >> 32
}

// tagOf takes bits of the hash that neither home nor the choice of a shard uses. The
// top bit tells it from an empty place.
func tagOf(hash uint64) uint64 { return hash>>24&0x7f | 0x80 }

// matches returns the top bit of each byte that has the tag. A byte above a match can
// be taken for one as well; the keys tell.
func matches(tags, tag uint64) uint64 {
	x := tags ^ tag*everyByte
	return (x - everyByte) & ^x & nodeTops
}

// find returns the key's node with its bucket and its index there, or nil. Anybody may
// call it at any time.
func (t *table[K, V]) find(hash uint64, key K) (n *node[K, V], b *bucket[K, V], at uint) {
	tag := tagOf(hash)
	i := t.home(hash)
	for range t.buckets {
		b = &t.buckets[i]
		tags := b.tags.Load()
		for m := matches(tags, tag); m != 0; m &= m - 1 {
			at = uint(bits.TrailingZeros64(m)) / 8
			if n = b.nodes[at].Load(); n != nil && n.key == key {
				return n, b, at
			}
		}
		if tags>>passedBit == 0 {
			break
		}
		if i++; i == uint64(len(t.buckets)) {
			i = 0
		}
	}
	return nil, nil, 0
}

// insert adds a node whose key is not in the table, which must have a place left.
func (t *table[K, V]) insert(n *node[K, V]) { t.place(n, n.hash) }

// place is insert for a node whose hash is at hand.
func (t *table[K, V]) place(n *node[K, V], hash uint64) {
	i := t.home(hash)
	for {
		b := &t.buckets[i]
		tags := b.tags.Load()
		if free := ^tags & nodeTops; free != 0 {
			at := bits.TrailingZeros64(free) / 8
			b.nodes[at].Store(n) // first, as whoever sees the tag looks for it
			b.tags.Store(tags | tagOf(hash)<<(8*at))
			return
		}
		b.pass(tags, +1)
		if i++; i == uint64(len(t.buckets)) {
			i = 0
		}
	}
}

// remove takes out a node at the place where it was just found, and tells the
// buckets that it passed over.
func (t *table[K, V]) remove(n *node[K, V], b *bucket[K, V], at uint) {
	b.tags.Store(b.tags.Load() &^ (0xff << (8 * at)))
	b.nodes[at].Store(nil)
	i := t.home(n.hash)
	for &t.buckets[i] != b {
		t.buckets[i].pass(t.buckets[i].tags.Load(), -1)
		if i++; i == uint64(len(t.buckets)) {
			i = 0
		}
	}
}

// pass counts a node that goes to a later bucket, or has left it.
func (b *bucket[K, V]) pass(tags uint64, by int64) {
	if tags>>passedBit < passedMax {
		b.tags.Store(tags + uint64(by)<<passedBit)
	}
}

// grown returns a larger table with the same nodes.
func (t *table[K, V]) grown(room int) *table[K, V] {
	// Writers wait for this, and each node is a wait for memory. To look at the hashes
	// of some nodes before the first of them is placed lets these waits overlap.
	const atOnce = 4
	var nodes [atOnce * perBucket]*node[K, V]
	var hashes [atOnce * perBucket]uint64
	larger := newTable[K, V](room)
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
			hashes[i] = n.hash
		}
		for i, n := range nodes[:found] {
			larger.place(n, hashes[i])
		}
	}
	return larger
}
