// Package lru is a tier in this process's memory, bounded by the number of entries: an
// LRU, or golang-lru's 2Q or ARC, sharded so that cores do not wait for one lock.
//
// An LRU in several shards is a list through a table that readers search without a lock: a
// hit takes none while its entry is near the front of its shard, or a quarter of the shard
// is free. One shard is golang-lru's LRU; that, a 2Q and an ARC lock for each hit.
//
// What it gives back it has neither copied nor checked for age: reads do not look at
// the clock. An entry whose life is over stays until something evicts or replaces
// it.
package lru

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/terracecache/terrace/backends/internal/expiry"
	"github.com/terracecache/terrace/tier"
)

// Options are what [NewWith] is told. Capacity must be set.
type Options struct {
	// Capacity is the most entries held, over all shards; at least 1.
	Capacity int

	// Eviction says which entry goes when there is no room. Zero: [LRU].
	Eviction Eviction

	// Shards is how many parts, each with its own lock and its share of Capacity,
	// the entries are spread over by hash. Each part evicts on its own, and an LRU with
	// several leaves what is near the front of its part where it is, and only marks what is used
	// while a quarter of the part is free, so that only 1 gives the exact order. Zero: a few for each core where Capacity allows.
	Shards int
}

// Validate returns what is wrong with the options, or nil.
func (o Options) Validate() error {
	switch {
	case o.Capacity < 1:
		return fmt.Errorf("lru: Capacity %d: want the number of entries to hold, at least 1", o.Capacity)
	case o.Eviction > ARC:
		return fmt.Errorf("lru: Eviction %d: want LRU, TwoQueue or ARC", o.Eviction)
	case o.Shards < 0 || o.Shards > min(mostShards, o.Capacity):
		return fmt.Errorf("lru: Shards %d: want at most %d, or zero to leave it to the store", o.Shards, min(mostShards, o.Capacity))
	}
	return nil
}

const (
	// shardsPerCore makes it rare that two cores want one shard at a time. It is no
	// power of two because the parts of a Go map double: with 16, a million entries
	// leave all of them half empty at once, which costs 20 B an entry.
	shardsPerCore = 20
	// leastPerShard keeps shards so large that chance fills them about alike; the
	// hit ratio is then that of one LRU, to a few per mille.
	leastPerShard = 256
	// mostShards is far more than there are cores.
	mostShards = 1 << 16
)

func (o Options) shards() int {
	if o.Shards > 0 {
		return o.Shards
	}
	return max(1, min(shardsPerCore*runtime.GOMAXPROCS(0), o.Capacity/leastPerShard))
}

// Store is an in-memory [tier.Store] bounded by the number of entries. Besides, it
// can be cleared and measured, and with [LRU] resized.
type Store[K comparable, V any] struct {
	shards   []shard[K, V] // at least one
	keys     tier.Hasher[K]
	eviction Eviction
	invalid  error

	_        [64]byte // readers share the line above with nobody who writes
	expiry   expiry.Clock
	resizing sync.Mutex // or two at once could leave shares of both
}

// New returns a store that holds at most capacity entries and evicts the least
// recently used ones.
func New[K comparable, V any](capacity int) *Store[K, V] {
	return NewWith[K, V](Options{Capacity: capacity})
}

// NewWith is [New] with options. If these are wrong, [Store.Validate] tells so, and
// all other methods answer with the same error.
func NewWith[K comparable, V any](o Options) *Store[K, V] {
	s := &Store[K, V]{
		keys:     tier.NewHasher[K](),
		eviction: o.Eviction,
		invalid:  o.Validate(),
	}
	if s.invalid != nil {
		s.shards = []shard[K, V]{&recent[K, V]{}} // closed
		return s
	}
	s.shards = make([]shard[K, V], o.shards())
	for i := range s.shards {
		capacity := s.share(o.Capacity, i)
		if o.Eviction == LRU && len(s.shards) > 1 {
			s.shards[i] = newRecent[K, V](capacity, s.keys.Hash)
		} else {
			s.shards[i] = newLocked[K, V](o.Eviction, capacity)
		}
	}
	return s
}

// share returns how much of the capacity the i-th shard has.
func (s *Store[K, V]) share(capacity, i int) int {
	share := capacity / len(s.shards)
	if i < capacity%len(s.shards) {
		share++
	}
	return share
}

// Validate returns what is wrong with the options, or nil.
func (s *Store[K, V]) Validate() error { return s.invalid }

// Local implements [tier.Local].
func (s *Store[K, V]) Local() bool { return true }

// EndsByEntry implements [tier.EndsByEntry].
func (s *Store[K, V]) EndsByEntry() bool { return true }

// Get implements [tier.Store]. It does not allocate.
func (s *Store[K, V]) Get(_ context.Context, key K) (*tier.Entry[V], error) {
	// The lines of GetPair, as a call is a twentieth of a hit.
	if !s.keys.Comparable(key) {
		return nil, tier.ErrBadKey
	}
	hash := s.keys.Hash(key)
	pair, open := s.shard(hash).get(hash, key)
	if !open {
		return nil, s.closed()
	}
	return pair.Entry(), nil
}

// GetPair implements [tier.PairStore].
func (s *Store[K, V]) GetPair(_ context.Context, key K) (*tier.Pair[K, V], error) {
	if !s.keys.Comparable(key) {
		return nil, tier.ErrBadKey
	}
	hash := s.keys.Hash(key)
	pair, open := s.shard(hash).get(hash, key)
	if !open {
		return nil, s.closed()
	}
	return pair, nil
}

// Set implements [tier.Store]. A key that does not equal itself (NaN) is a
// [tier.ErrBadKey]: it could never be found again.
func (s *Store[K, V]) Set(ctx context.Context, key K, entry *tier.Entry[V], ttl time.Duration) error {
	if ttl <= 0 || entry == nil {
		return s.Delete(ctx, key)
	}
	return s.SetPair(ctx, tier.PairOf(key, entry), ttl)
}

// SetPair implements [tier.PairStore].
func (s *Store[K, V]) SetPair(ctx context.Context, pair *tier.Pair[K, V], ttl time.Duration) error {
	key := pair.Key()
	if ttl <= 0 {
		return s.Delete(ctx, key)
	}
	if !s.keys.Storable(key) {
		return tier.ErrBadKey
	}
	pair = pair.Capped(s.expiry.Until(pair.Entry().UsableUntil(), ttl))
	hash := s.keys.Hash(key)
	if !s.shard(hash).set(hash, pair) {
		return s.closed()
	}
	return nil
}

// Itself implements [tier.PairStore].
func (s *Store[K, V]) Itself() tier.Store[K, V] { return s }

// Delete implements [tier.Store].
func (s *Store[K, V]) Delete(_ context.Context, key K) error {
	if !s.keys.Comparable(key) {
		return tier.ErrBadKey
	}
	hash := s.keys.Hash(key)
	if !s.shard(hash).remove(hash, key) {
		return s.closed()
	}
	return nil
}

// Clear implements [tier.Clearer].
func (s *Store[K, V]) Clear(context.Context) error {
	for _, shard := range s.shards {
		if !shard.clear() {
			return s.closed()
		}
	}
	return nil
}

// Usage implements [tier.Measurer].
func (s *Store[K, V]) Usage() tier.Usage {
	u := tier.Usage{Cost: -1, MaxCost: -1, Rejections: -1}
	for _, shard := range s.shards {
		held, capacity, evicted := shard.usage()
		u.Entries += held
		u.MaxEntries += capacity
		u.Evictions += evicted
	}
	return u
}

// Eviction implements [tier.Evicting]: "lru", "2q" or "arc".
func (s *Store[K, V]) Eviction() string { return s.eviction.String() }

// Can implements [tier.Partial]: golang-lru's 2Q and ARC keep their size for life.
func (s *Store[K, V]) Can(c tier.Capability) bool { return c != tier.CanResize || s.eviction == LRU }

// Resize implements [tier.Resizer] for stores with [LRU]: what has no room any more is
// evicted at once, the least recently used first. A 2Q or ARC answers with
// [tier.ErrNotResizable]. The number of shards is for life, and each holds one entry at
// least, so a smaller capacity is an error.
func (s *Store[K, V]) Resize(capacity int64) error {
	switch {
	case s.invalid != nil:
		return s.invalid
	case s.eviction != LRU:
		return fmt.Errorf("lru: %v: %w", s.eviction, tier.ErrNotResizable)
	case capacity < int64(len(s.shards)):
		return fmt.Errorf("lru: Resize to %d: want at least %d, one entry for each shard", capacity, len(s.shards))
	}
	most := int(min(capacity, math.MaxInt))
	s.resizing.Lock()
	defer s.resizing.Unlock()
	for i, shard := range s.shards {
		if !shard.resize(s.share(most, i)) {
			return s.closed()
		}
	}
	return nil
}

// Close implements [tier.Store]. It lets go of all entries.
func (s *Store[K, V]) Close() error {
	for _, shard := range s.shards {
		shard.close()
	}
	return nil
}

// closed returns the answer of a store that is closed or never was right.
func (s *Store[K, V]) closed() error {
	if s.invalid != nil {
		return s.invalid
	}
	return tier.ErrClosed
}

func (s *Store[K, V]) shard(hash uint64) shard[K, V] {
	// Bits that the index does not use, times n, are spread over [0,n) as evenly as over
	// their range, for any n and without a division.
	return s.shards[hash&0xff_ffff*uint64(len(s.shards))>>24]
}
