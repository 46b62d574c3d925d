// Package otter is a tier in this process's memory, bounded by the number of entries or
// by cost: maypok86/otter, whose readers take no lock, and which evicts by W-TinyLFU with
// a window that adapts itself.
//
// What it gives back it has not checked for age: Otter is told of no time to live, with
// which it would look at the clock in every Get. An entry whose life is over stays until
// something evicts or replaces it. Nobody asks for it with success any more, so it is
// among the first to go when room is needed; until then it takes its part of the room,
// and never more than that.
package otter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/terracecache/terrace/backends/internal/expiry"
	"github.com/terracecache/terrace/tier"
)

// Options are what [New] is told. Either Capacity or MaxCost must be set.
type Options[K comparable, V any] struct {
	// Capacity is the most entries held.
	Capacity int

	// MaxCost is the most that the entries may cost together, in the unit of Cost.
	MaxCost int64

	// Cost returns what an entry costs; less than 1 counts as 1. An entry that costs more
	// than MaxCost, or 4 Gi, is not kept. It may be called concurrently. It is for stores
	// with a MaxCost. Nil: an estimate of the bytes of the heap that the entry takes, with
	// all that its key and value lead to and what Otter needs for it. With it the heap
	// is within a quarter of MaxCost when the store is full, if MaxCost is some megabytes
	// at least. What values share with each other or with others counts for each of them;
	// what is behind a lock, an atomic or in a func does not count.
	Cost func(key K, entry *tier.Entry[V]) int64
}

// Validate returns what is wrong with the options, or nil.
func (o Options[K, V]) Validate() error {
	switch {
	case o.Capacity == 0 && o.MaxCost == 0:
		return errors.New("otter: neither Capacity nor MaxCost: want one of them, at least 1")
	case o.Capacity != 0 && o.MaxCost != 0:
		return fmt.Errorf("otter: Capacity %d and MaxCost %d: want only one of them", o.Capacity, o.MaxCost)
	case o.Capacity < 0:
		return fmt.Errorf("otter: Capacity %d: want the number of entries to hold, at least 1", o.Capacity)
	case o.MaxCost < 0:
		return fmt.Errorf("otter: MaxCost %d: want the most that the entries may cost together, at least 1", o.MaxCost)
	case o.Cost != nil && o.MaxCost == 0:
		return errors.New("otter: a Cost without a MaxCost")
	}
	return nil
}

// Store is an in-memory [tier.Store] bounded by the number of entries or by cost.
// Besides, it can be cleared, measured and resized.
type Store[K comparable, V any] struct {
	keys    tier.Hasher[K]
	cache   atomic.Pointer[cache[K, V]]   // nil when closed
	cost    func(K, *tier.Entry[V]) int64 // nil: bounded by the number of entries
	invalid error

	_          [64]byte // readers share the line above with nobody who writes
	expiry     expiry.Clock
	mu         sync.Mutex   // of whoever changes cache or most
	most       atomic.Int64 // entries or cost
	evictions  atomic.Int64
	rejections atomic.Int64
}

type cache[K comparable, V any] = otter.Cache[K, held[V]]

// held is what Otter holds under a key.
type held[V any] struct {
	entry *tier.Entry[V]
	cost  uint32 // here, as Otter asks for it under its locks
}

// New returns a store. If the options are wrong, [Store.Validate] tells so, and all
// other methods answer with the same error.
func New[K comparable, V any](o Options[K, V]) *Store[K, V] {
	s := &Store[K, V]{keys: tier.NewHasher[K](), invalid: o.Validate()}
	if s.invalid != nil {
		return s
	}
	s.most.Store(int64(o.Capacity))
	if o.MaxCost > 0 {
		s.most.Store(o.MaxCost)
		if s.cost = o.Cost; s.cost == nil {
			s.cost = estimate[K, V]()
		}
	}
	s.cache.Store(s.newCache())
	return s
}

func (s *Store[K, V]) newCache() *cache[K, V] {
	o := otter.Options[K, held[V]]{
		OnAtomicDeletion: s.onDeletion,
		// Eviction is done by whoever comes upon something to do, without waiting: nobody
		// can write faster than is evicted, and there is no goroutine to be ended.
		Executor: func(task func()) { task() },
	}
	if s.cost == nil {
		o.MaximumSize = int(s.most.Load())
	} else {
		o.MaximumWeight = uint64(s.most.Load())
		o.Weigher = func(_ K, h held[V]) uint32 { return h.cost }
	}
	return otter.Must(&o) // its errors are about a maximum below 1
}

// Validate returns what is wrong with the options, or nil.
func (s *Store[K, V]) Validate() error { return s.invalid }

// Local implements [tier.Local].
func (s *Store[K, V]) Local() bool { return true }

// EndsByEntry implements [tier.EndsByEntry].
func (s *Store[K, V]) EndsByEntry() bool { return true }

// Eviction implements [tier.Evicting].
func (s *Store[K, V]) Eviction() string { return "w-tinylfu" }

// Get implements [tier.Store]. It does not allocate, nor look at the clock, nor wait for
// a lock.
func (s *Store[K, V]) Get(_ context.Context, key K) (*tier.Entry[V], error) {
	if !s.keys.Comparable(key) {
		return nil, tier.ErrBadKey
	}
	c := s.cache.Load()
	if c == nil {
		return nil, s.closed()
	}
	h, _ := c.GetIfPresent(key)
	return h.entry, nil
}

// Set implements [tier.Store]. The entry may be given up at once when what is there is
// used more often, which counts as an eviction in Usage, and is when it costs more than
// MaxCost, which counts as a rejection. A key that does not equal itself (NaN) is a
// [tier.ErrBadKey]: it could never be found again.
func (s *Store[K, V]) Set(ctx context.Context, key K, entry *tier.Entry[V], ttl time.Duration) error {
	if ttl <= 0 || entry == nil {
		return s.Delete(ctx, key)
	}
	if !s.keys.Storable(key) {
		return tier.ErrBadKey
	}
	h := held[V]{entry: entry.Capped(s.expiry.Until(entry.UsableUntil(), ttl))}
	if s.cost != nil {
		cost := max(1, s.cost(key, h.entry))
		if cost > min(s.most.Load(), math.MaxUint32) {
			s.rejections.Add(1)
			return s.Delete(ctx, key)
		}
		h.cost = uint32(cost)
	}
	c := s.cache.Load()
	if c == nil {
		return s.closed()
	}
	c.Set(key, h)
	return nil
}

// Delete implements [tier.Store].
func (s *Store[K, V]) Delete(_ context.Context, key K) error {
	if !s.keys.Comparable(key) {
		return tier.ErrBadKey
	}
	c := s.cache.Load()
	if c == nil {
		return s.closed()
	}
	if s.keys.Storable(key) {
		c.Invalidate(key)
	}
	return nil
}

// Clear implements [tier.Clearer]. It takes no longer for many entries than for few.
func (s *Store[K, V]) Clear(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache.Load() == nil {
		return s.closed()
	}
	s.cache.Store(s.newCache())
	return nil
}

// Resize implements [tier.Resizer], in the unit that bounds the store. What has no room
// any more is evicted before it returns; writers may wait meanwhile, readers do not.
// Otter's tables stay as large as they are until a Clear: about 40 bytes of the heap for
// each entry that was ever held at a time.
func (s *Store[K, V]) Resize(capacity int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cache.Load()
	switch {
	case c == nil:
		return s.closed()
	case capacity < 1:
		return fmt.Errorf("otter: Resize to %d: want at least 1", capacity)
	}
	if s.cost == nil {
		capacity = min(capacity, math.MaxInt)
	}
	s.most.Store(capacity)
	c.SetMaximum(uint64(capacity))
	return nil
}

// Usage implements [tier.Measurer]. Rejections counts the entries that cost more than
// MaxCost.
func (s *Store[K, V]) Usage() tier.Usage {
	u := tier.Usage{MaxEntries: -1, Cost: -1, MaxCost: -1, Rejections: s.rejections.Load()}
	c := s.cache.Load()
	if c != nil {
		c.CleanUp() // what writers that met have left to others
		u.Entries = int64(c.EstimatedSize())
	}
	if s.cost == nil {
		u.MaxEntries = s.most.Load()
	} else {
		u.Cost, u.MaxCost = 0, s.most.Load()
		if c != nil {
			u.Cost = int64(c.WeightedSize())
		}
	}
	u.Evictions = s.evictions.Load()
	return u
}

// Close implements [tier.Store]. It lets go of all entries.
func (s *Store[K, V]) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.Store(nil)
	return nil
}

// closed returns the answer of a store that is closed or never was right.
func (s *Store[K, V]) closed() error {
	if s.invalid != nil {
		return s.invalid
	}
	return tier.ErrClosed
}

// onDeletion is called by Otter for whatever goes or is replaced.
func (s *Store[K, V]) onDeletion(e otter.DeletionEvent[K, held[V]]) {
	if e.Cause == otter.CauseOverflow {
		s.evictions.Add(1)
	}
}
