package lru

import (
	"sync"

	"github.com/terracecache/terrace/tier"
)

// locked is a shard that readers lock as well: a 2Q, an ARC and an LRU of exact order change
// with each read.
type locked[K comparable, V any] struct {
	mu       sync.Mutex
	held     evictor[K, V] // nil when closed
	eviction Eviction
	capacity int
	added    int64 // entries under keys that held none
	removed  int64 // entries that somebody removed; what else is gone was evicted

	_ [64]byte // keeps the next shard's lock off this one's cache line
}

func newLocked[K comparable, V any](e Eviction, capacity int) *locked[K, V] {
	return &locked[K, V]{held: newEvictor[K, V](e, capacity), eviction: e, capacity: capacity}
}

func (s *locked[K, V]) get(_ uint64, key K) (pair *tier.Pair[K, V], open bool) {
	s.mu.Lock()
	if open = s.held != nil; open {
		pair, _ = s.held.Get(key)
	}
	s.mu.Unlock()
	return pair, open
}

func (s *locked[K, V]) set(_ uint64, pair *tier.Pair[K, V]) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return false
	}
	if !s.held.Contains(pair.Key()) {
		s.added++
	}
	s.held.Add(pair.Key(), pair)
	return true
}

func (s *locked[K, V]) remove(_ uint64, key K) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return false
	}
	if s.held.Contains(key) {
		s.removed++
	}
	s.held.Remove(key)
	return true
}

func (s *locked[K, V]) clear() (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return false
	}
	s.removed += int64(s.held.Len())
	s.held = newEvictor[K, V](s.eviction, s.capacity)
	return true
}

func (s *locked[K, V]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		s.removed += int64(s.held.Len())
		s.held = nil
	}
}

// resize is for an LRU.
func (s *locked[K, V]) resize(capacity int) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return false
	}
	s.capacity = capacity
	s.held.(plain[K, V]).Resize(capacity)
	return true
}

func (s *locked[K, V]) usage() (held, capacity, evicted int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		held = int64(s.held.Len())
	}
	return held, int64(s.capacity), s.added - s.removed - held
}
