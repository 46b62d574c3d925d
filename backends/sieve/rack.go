package sieve

import (
	"sync/atomic"

	"github.com/terracecache/terrace/backends/internal/index"
	"github.com/terracecache/terrace/tier"
)

// rack is a shard's table with what is known of each of its places. A key that is written
// again changes the pair in its place and nothing else.
type rack[K comparable, V any] struct {
	index.Table[K, V]
	visited []atomic.Uint32 // a bit for each place, by the place itself: there was a hit since the hand last came by
	moving  atomic.Bool     // places are sealed, or about to be: the pairs move to another rack

	_ [64]byte // keeps what the shard's lock guards off the lines of readers

	links    index.Links
	hashes   []uint64 // by the place's number
	inWindow []uint32 // a bit for each place, as in visited
}

const (
	// firstRoom is how many pairs a rack is made for at first.
	firstRoom = 42
	// perSpare is for how many pairs the rack has a place that is free.
	perSpare = 2

	bitsPerWord = 32
)

func newRack[K comparable, V any](room int) *rack[K, V] {
	t := &rack[K, V]{Table: *index.NewTable[K, V](room, perSpare)}
	n := t.Places()
	words := int(t.Last()/bitsPerWord) + 1
	t.visited, t.inWindow = make([]atomic.Uint32, words), make([]uint32, words)
	t.links, t.hashes = index.NewLinks(n), make([]uint64, n)
	return t
}

// visit notes a hit. Who has one looks first whether that is noted: nearly always it is, and
// then cores share the line.
func (t *rack[K, V]) visit(p index.Place) { t.visited[p/bitsPerWord].Or(1 << (p % bitsPerWord)) }

// unvisit forgets a hit, and reports whether there was one.
func (t *rack[K, V]) unvisit(p index.Place) bool {
	if !t.isVisited(p) {
		return false
	}
	t.visited[p/bitsPerWord].And(^(uint32(1) << (p % bitsPerWord)))
	return true
}

func (t *rack[K, V]) isVisited(p index.Place) bool {
	return t.visited[p/bitsPerWord].Load()&(1<<(p%bitsPerWord)) != 0
}

func (t *rack[K, V]) isInWindow(p index.Place) bool {
	return t.inWindow[p/bitsPerWord]&(1<<(p%bitsPerWord)) != 0
}

func (t *rack[K, V]) setInWindow(p index.Place, in bool) {
	word, bit := &t.inWindow[p/bitsPerWord], uint32(1)<<(p%bitsPerWord)
	if in {
		*word |= bit
	} else {
		*word &^= bit
	}
}

func (t *rack[K, V]) hash(p index.Place) uint64 { return t.hashes[p.Number()] }

// renew puts the pair in the place of another of its key, and reports whether there was one
// and whether it did. It needs no lock.
func (t *rack[K, V]) renew(hash uint64, pair *tier.Pair[K, V]) (found, renewed bool) {
	old, p := t.Find(hash, pair.Key())
	// What was found is either from before its place was sealed, and then it is replaced
	// only if it is still so, or moving shows now: no reader finds the new one in this rack
	// and then an older one in the next.
	if old == nil || t.moving.Load() || !t.Replace(p, old, pair) {
		return old != nil, false
	}
	if !t.isVisited(p) {
		t.visit(p)
	}
	return true, true
}

// insert adds a pair without a hit. It is in no queue yet.
func (t *rack[K, V]) insert(hash uint64, pair *tier.Pair[K, V]) index.Place {
	p := t.Insert(hash, pair)
	t.hashes[p.Number()] = hash
	t.unvisit(p) // it may have been another's place
	return p
}

// drop takes out the pair at the place, which must be out of its queue.
func (t *rack[K, V]) drop(p index.Place) { t.Remove(t.hash(p), p) }
