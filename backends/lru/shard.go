package lru

import (
	"sync"

	"github.com/terracecache/terrace/tier"
)

// shard is a part of the entries behind a lock of its own. Its methods report
// false when it is closed.
type shard[K comparable, V any] struct {
	mu       sync.Mutex
	held     evictor[K, V] // nil when closed
	eviction Eviction
	capacity int
	added    int64 // entries under keys that held none
	removed  int64 // entries that somebody removed; what else is gone was evicted

	_ [64]byte // keeps the next shard's lock off this one's cache line
}

func newShard[K comparable, V any](e Eviction, capacity int) *shard[K, V] {
	return &shard[K, V]{held: newEvictor[K, V](e, capacity), eviction: e, capacity: capacity}
}

func (s *shard[K, V]) get(key K) (entry *tier.Entry[V], open bool) {
	s.mu.Lock()
	if open = s.held != nil; open {
		entry, _ = s.held.Get(key)
	}
	s.mu.Unlock()
	return entry, open
}

func (s *shard[K, V]) set(key K, entry *tier.Entry[V]) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return false
	}
	if !s.held.Contains(key) {
		s.added++
	}
	s.held.Add(key, entry)
	return true
}

func (s *shard[K, V]) remove(key K) (open bool) {
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

func (s *shard[K, V]) clear() (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return false
	}
	s.removed += int64(s.held.Len())
	s.held = newEvictor[K, V](s.eviction, s.capacity)
	return true
}

func (s *shard[K, V]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		s.removed += int64(s.held.Len())
		s.held = nil
	}
}

// resize is for shards that evict by LRU.
func (s *shard[K, V]) resize(capacity int) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return false
	}
	s.capacity = capacity
	s.held.(plain[K, V]).Resize(capacity)
	return true
}

func (s *shard[K, V]) usage() (held, capacity, evicted int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		held = int64(s.held.Len())
	}
	return held, int64(s.capacity), s.added - s.removed - held
}
