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
// An item has at most one place, in the line of its hash, and where that is full who comes
// takes another's. Items are put in with the shard's mu held, when it has settled that they
// are held, and take themselves out as soon as Ristretto lets them go, so that none is kept
// alive here.
type shortcuts[K comparable, V any] struct {
	lines atomic.Pointer[[]line[K, V]] // a power of two of them, or nil
}

// line is a cache line. A tag says which items to look at, as each look is a wait for memory.
type line[K comparable, V any] struct {
	tags  atomic.Uint64 // of item i in byte i; in byte perLine whose place is to be taken next
	items [perLine]atomic.Pointer[item[K, V]]
}

const (
	perLine = 7
	// itemsPerLine is for how many items there is a line: few find theirs full.
	itemsPerLine = 5
	// mostMoved is how many lines are moved when there are to be more. The shard's writers
	// wait meanwhile, and its readers if writes have not settled, for a tenth of a
	// millisecond; all shards come to this at about one time. Beyond, items are left to be
	// found anew.
	mostMoved = 128
)

// line returns the hash's line, or nil if there are none.
func (c *shortcuts[K, V]) line(hash uint64) *line[K, V] {
	lines := c.lines.Load()
	if lines == nil {
		return nil
	}
	return lineOf(*lines, hash)
}

func lineOf[K comparable, V any](lines []line[K, V], hash uint64) *line[K, V] {
	return &lines[hash/shards&uint64(len(lines)-1)] // the shard is chosen by what is left
}

const (
	everyByte = 0x0101010101010101
	itemTops  = 0x0080808080808080 // the top bit of each item's tag
)

func tagOf(hash uint64) uint64 { return hash >> 56 }

// matches returns the top bit of each byte that has the tag. A byte above a match can be taken
// for one as well; the keys tell. Source: Mycroft, "Determine if a word has a zero byte", 1987.
func matches(tags, tag uint64) uint64 {
	x := tags ^ tag*everyByte
	return (x - everyByte) & ^x & itemTops
}

// find returns the key's item, if Ristretto holds it and it has a place.
func (c *shortcuts[K, V]) find(hash uint64, key K) *item[K, V] {
	l := c.line(hash)
	if l == nil {
		return nil
	}
	for m := matches(l.tags.Load(), tagOf(hash)); m != 0; m &= m - 1 {
		it := l.items[uint(bits.TrailingZeros64(m))/8].Load()
		if it != nil && it.key() == key && it.state.Load() == counted {
			return it
		}
	}
	return nil
}

// keep puts in an item, of a store that holds so many.
func (c *shortcuts[K, V]) keep(hash uint64, it *item[K, V], entries int64, hashOf func(K) uint64) {
	c.grow(int(entries/shards), hashOf)
	l := c.line(hash)
	l.leaveGone(l.put(hash, it))
}

// put puts the item into a place of the line, and returns which.
func (l *line[K, V]) put(hash uint64, it *item[K, V]) (at int) {
	tags := l.tags.Load()
	next := tags >> (8 * perLine)
	at = int(next)
	for i := range l.items {
		there := l.items[i].Load()
		if there == it { // who came before the lock and did not find it, finds it now
			return i
		}
		if there == nil && at == int(next) {
			at = i
		}
	}
	if at == int(next) {
		next = (next + 1) % perLine
	}
	tags = tags&^(0xff<<(8*at)|0xff<<(8*perLine)) | tagOf(hash)<<(8*at) | next<<(8*perLine)
	l.items[at].Store(it)
	l.tags.Store(tags)
	return at
}

// leaveGone takes out of the place what has gone meanwhile, perhaps before it was there.
func (l *line[K, V]) leaveGone(at int) {
	if it := l.items[at].Load(); it != nil && it.state.Load() != counted {
		l.items[at].CompareAndSwap(it, nil)
	}
}

// grow makes lines for so many items, with those that are in the lines before, if these are
// few enough.
func (c *shortcuts[K, V]) grow(items int, hashOf func(K) uint64) {
	old, n := c.lines.Load(), 1
	if items > itemsPerLine {
		n = 1 << bits.Len(uint((items-1)/itemsPerLine))
	}
	if old != nil && len(*old) >= n {
		return
	}
	lines := make([]line[K, V], n)
	if old == nil || len(*old) > mostMoved {
		c.lines.Store(&lines)
		return
	}
	for i := range *old {
		for j := range (*old)[i].items {
			if it := (*old)[i].items[j].Load(); it != nil {
				hash := hashOf(it.key())
				lineOf(lines, hash).put(hash, it)
			}
		}
	}
	c.lines.Store(&lines)
	for i := range lines { // who went before this looked for itself in the old ones
		for at := range lines[i].items {
			lines[i].leaveGone(at)
		}
	}
}

// drop takes out all, and gives back the lines.
func (c *shortcuts[K, V]) drop() { c.lines.Store(nil) }

// forget takes out an item that is gone, as its state must say. Anybody may call it.
func (c *shortcuts[K, V]) forget(hash uint64, it *item[K, V]) {
	if l := c.line(hash); l != nil {
		for i := range l.items {
			if l.items[i].Load() == it {
				l.items[i].CompareAndSwap(it, nil)
			}
		}
	}
}
