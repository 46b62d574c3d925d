package ristretto

import (
	"time"

	"github.com/terracecache/terrace/tier"
)

// SlotWidth is how long a slot is.
const SlotWidth time.Duration = slotWidth

// SpareNotes is how many notes a store may have beside two an entry.
const SpareNotes = spareNotes

// Notes returns how many ends are noted. Only when nothing is pending.
func (s *Store[K, V]) Notes() int {
	defer s.hold()()
	return s.notes.count
}

// Slots returns how many slots they are under. Only when nothing is pending.
func (s *Store[K, V]) Slots() int {
	defer s.hold()()
	return len(s.notes.hashes)
}

// FirstNote returns the slot under which an entry is noted when it has come.
func FirstNote(end, now uint32) uint32 { return Coarse(uint32(early(slot(end), slot(now))), now) }

// Coarse returns the slot under which an end is noted.
func Coarse(end, now uint32) uint32 { return uint32(coarse(slot(end), slot(now))) }

// Waits reports whether a timer runs. Only when nothing is pending.
func (s *Store[K, V]) Waits() bool {
	defer s.hold()()
	n := &s.notes
	if n.timer == nil || !n.timer.Stop() {
		return false
	}
	n.timer.Reset(n.next.end().Sub(tier.Now()))
	return true
}

// hold keeps the timer from starting the settler.
func (s *Store[K, V]) hold() (release func()) {
	s.shards[0].mu.Lock()
	return s.shards[0].mu.Unlock
}

// Shortcuts returns how many items shortcuts lead to, and how many of these Ristretto does
// not hold. Only when nothing is pending.
func (s *Store[K, V]) Shortcuts() (items, gone int) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		if lines := sh.shortcuts.lines.Load(); lines != nil {
			for j := range *lines {
				for k := range (*lines)[j].items {
					it := (*lines)[j].items[k].Load()
					if it == nil {
						continue
					}
					items++
					if held, ok := s.held(s.hashOf(it.key())); !ok || held != it {
						gone++
					}
				}
			}
		}
		sh.mu.Unlock()
	}
	return items, gone
}

// Places returns how many places there are for shortcuts.
func (s *Store[K, V]) Places() (n int) {
	for i := range s.shards {
		if lines := s.shards[i].shortcuts.lines.Load(); lines != nil {
			n += perLine * len(*lines)
		}
	}
	return n
}
