package storetest

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Map is the simplest [tier.Store] that is right: a map behind a mutex, without a
// bound. It is local, can be cleared and measured, and takes its time from
// [tier.Now], so it works in virtual time.
type Map[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]*tier.Entry[V] // nil when closed
}

// NewMap returns an empty Map.
func NewMap[K comparable, V any]() *Map[K, V] {
	return &Map[K, V]{entries: make(map[K]*tier.Entry[V])}
}

// Get implements [tier.Store].
func (m *Map[K, V]) Get(_ context.Context, key K) (*tier.Entry[V], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		return nil, tier.ErrClosed
	}
	e := m.entries[key]
	if e != nil && e.UsableUntil() <= tier.Now() {
		delete(m.entries, key)
		return nil, nil
	}
	return e, nil
}

// Set implements [tier.Store].
func (m *Map[K, V]) Set(_ context.Context, key K, entry *tier.Entry[V], ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.entries == nil:
		return tier.ErrClosed
	case key != key: // NaN could be set and never found
		return tier.ErrBadKey
	case ttl <= 0:
		delete(m.entries, key)
	default:
		m.entries[key] = entry.Capped(tier.Now().Add(ttl))
	}
	return nil
}

// Delete implements [tier.Store].
func (m *Map[K, V]) Delete(_ context.Context, key K) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		return tier.ErrClosed
	}
	delete(m.entries, key)
	return nil
}

// Clear implements [tier.Clearer].
func (m *Map[K, V]) Clear(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		return tier.ErrClosed
	}
	clear(m.entries)
	return nil
}

// Entries returns a copy of what the map holds, for tests to look at.
func (m *Map[K, V]) Entries() map[K]*tier.Entry[V] {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.entries)
}

// Usage implements [tier.Measurer].
func (m *Map[K, V]) Usage() tier.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return tier.Usage{Entries: int64(len(m.entries)), MaxEntries: -1, Cost: -1, MaxCost: -1}
}

// Local implements [tier.Local].
func (m *Map[K, V]) Local() bool { return true }

// Close implements [tier.Store].
func (m *Map[K, V]) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = nil
	return nil
}
