package ristretto

import (
	"math/bits"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Ristretto is told of no time to live. With one it looks at the clock in every Get,
// and at every write keeps a map of ends under one lock. Entries tell their ends
// themselves, so all that is left to do is to give back the dead. The settler,
// through whose hands each write goes anyway, notes the hash of each entry that it
// finds held under the time of its end, looks at it again then, and removes it if it
// is dead.
//
// An entry has one note that counts, which its item names. It may be for a time
// before the end, and is at first: then the entry is noted anew when that has come. So an
// entry that takes another's place takes over its note, unless it dies much sooner, and a
// key that is written all the time is noted once or twice a life. All other notes are of
// entries that are gone. They go when their time comes, or when there are two notes to an
// entry.

// slot is a stretch of 2^32 ns (4.3 s) of the monotonic clock. They are counted from
// before all instants that matter, so that zero can mean none.
type slot uint32

const (
	slotBits  = 32
	slotWidth = 1 << slotBits
)

func slotOf(i tier.Instant) slot { return slot(i>>slotBits) ^ 1<<31 }

// end returns when the slot is over.
func (s slot) end() tier.Instant {
	return (tier.Instant(int32(s^1<<31)) << slotBits).Add(slotWidth)
}

// spareNotes keeps small stores from looking for notes to drop all the time.
const spareNotes = 1024

// sweepBatch is how many removals may be in Ristretto's queue beside the writes.
const sweepBatch = 1024

// notes tell at which hashes to look when; 8 bytes each, and what slices have to
// spare. They are the settler's alone.
type notes struct {
	hashes map[slot][]uint64
	count  int
	next   slot // the first of hashes; zero: none
	timer  *time.Timer
	armed  slot // at whose end the timer fires; zero: it does not run
}

// add notes the hash for an entry that dies in the slot end, and returns the slot that
// it is noted under.
func (n *notes) add(hash uint64, end, now slot) slot {
	at := coarse(end, now)
	n.put(hash, at)
	return at
}

// coarse returns the slot under which to note an end: the end itself while it is near,
// and a round number before it while it is far away. It differs from now in one byte,
// so there are at most a thousand slots at a time, and five for an entry in its life: four
// for its end, after the one that is early.
func coarse(end, now slot) slot {
	if differing := bits.Len32(uint32(end ^ now)); differing > 8 {
		end &^= 1<<((differing-1)/8*8) - 1
	}
	return end
}

// early returns the slot for which to note an entry at first. What takes its place may have a
// shorter life, by jitter, and is to find the note good: a Set that must have another one
// costs ten times as much. A quarter is room for a jitter of 14 %.
func early(end, now slot) slot { return end - (end-now+3)/4 }

func (n *notes) put(hash uint64, at slot) {
	if n.hashes == nil {
		n.hashes = make(map[slot][]uint64)
	}
	n.hashes[at] = append(n.hashes[at], hash)
	n.count++
	if n.next == 0 || at < n.next {
		n.next = at
	}
}

// due reports whether a slot with notes is over.
func (n *notes) due(now slot) bool { return n.next != 0 && n.next < now }

// take removes and returns up to limit notes of the first slot.
func (n *notes) take(limit int) (at slot, hashes []uint64) {
	at = n.next
	all := n.hashes[at]
	rest := max(0, len(all)-limit)
	n.count -= len(all) - rest
	if rest > 0 {
		n.hashes[at] = all[:rest]
		return at, all[rest:]
	}
	delete(n.hashes, at)
	n.next = 0
	for at := range n.hashes {
		if n.next == 0 || at < n.next {
			n.next = at
		}
	}
	return at, all
}

func (n *notes) drop() { n.hashes, n.count, n.next = nil, 0, 0 }

// arm has f called at the end of the first slot, and not at all if there is none.
func (n *notes) arm(f func()) {
	switch {
	case n.armed == n.next:
		return
	case n.next == 0:
		n.timer.Stop()
	case n.timer == nil:
		n.timer = time.AfterFunc(n.next.end().Sub(tier.Now()), f)
	default:
		n.timer.Reset(n.next.end().Sub(tier.Now()))
	}
	n.armed = n.next
}

// stop is called when nothing is noted any more.
func (n *notes) stop() {
	if n.timer != nil {
		n.timer.Stop()
	}
}

// sweep looks at the notes whose time has come, and reports whether these were all.
// If there are many it looks at twice as many as there were writes in the round, as a
// note is seldom looked at more often, and at some in any case: so neither falls
// behind the other.
func (s *Store[K, V]) sweep(writes int64) bool {
	now := tier.Now()
	for left := 2*writes + sweepBatch; s.notes.due(slotOf(now)) && !s.closed.Load(); left -= sweepBatch {
		if left <= 0 {
			return false
		}
		at, hashes := s.notes.take(sweepBatch)
		for _, hash := range hashes {
			s.look(hash, at, now)
		}
		s.cache.Wait() // nothing else bounds how many removals are in the queue
	}
	return true
}

// look removes what Ristretto holds under the hash if it was noted under the slot and
// is dead, and notes it anew if it lives.
func (s *Store[K, V]) look(hash uint64, at slot, now tier.Instant) {
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	it, ok := s.cache.Get(hash)
	if !ok || it.noted() != at {
		return
	}
	switch {
	case sh.pending[it.key()] != nil || sh.settling[it.key()] != nil:
		it.note(0) // it is noted, if it stays, when it has settled
	case it.end() > now:
		it.note(s.notes.add(hash, slotOf(it.end()), slotOf(now)))
	default:
		s.cache.Del(hash)
	}
}

// keep counts and notes an entry that has settled. It is called with the shard's mu
// held.
func (s *Store[K, V]) keep(hash uint64, it *item[K, V], now tier.Instant) {
	if !it.mortal {
		it.note(0)
	} else if end := slotOf(it.end()); it.noted() == 0 || it.noted() > end {
		it.note(s.notes.add(hash, early(end, slotOf(now)), slotOf(now)))
	}
	if it.state.CompareAndSwap(uncounted, counted) {
		s.entries.Add(1)
		if it.mortal {
			s.mortals.Add(1)
		}
	}
}

// tidy drops notes of what is gone, and sets the timer. The argument is how many of
// dirty the settler has dealt with.
func (s *Store[K, V]) tidy(settled int64) {
	// An entry without a record has settled, and is counted if it is mortal. In this
	// order: only the settler makes mortals grow, so they are still zero when there is
	// no record.
	if s.mortals.Load() == 0 && s.dirty.Load() == settled {
		s.notes.drop()
	} else if int64(s.notes.count) > 2*s.entries.Load()+spareNotes {
		s.rewrite()
	}
	s.notes.arm(s.wake)
}

// rewrite replaces the notes by those that count. An item that takes another's place
// meanwhile takes the note over before it can be seen here.
func (s *Store[K, V]) rewrite() {
	s.notes.drop()
	s.cache.IterValues(func(it *item[K, V]) (stop bool) {
		if at := it.noted(); at != 0 {
			s.notes.put(s.hashOf(it.key()), at)
		}
		return false
	})
}

// wake is called by the timer.
func (s *Store[K, V]) wake() {
	sh := &s.shards[0] // any: Close holds them all
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !s.closed.Load() {
		s.call()
	}
}

// inherit is called by Ristretto before one item takes another's place under a hash. Not
// always does it tell of the other's exit.
func (s *Store[K, V]) inherit(it, prev *item[K, V]) (replace bool) {
	if at := prev.noted(); at != 0 {
		it.note(at)
	}
	s.leave(prev)
	return true
}
