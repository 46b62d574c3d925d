// Package sieve is the leanest tier in this process's memory: a hit takes no lock
// and writes nothing but, once, a bit. It is bounded by the number of entries, which
// are evicted by SIEVE behind a TinyLFU filter.
//
// What it gives back it has not checked for age: reads do not look at the clock. An
// entry whose life is over stays until something evicts or replaces it.
package sieve

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

// Admission says which new entries may stay when there is no room.
type Admission uint8

const (
	// Filtered lets a new entry pass through a window of a tenth of the room, and
	// then stay only if it was asked for more often of late than the one that would
	// have to go for it. A scan or a loop larger than the store does not flush it.
	// Source of the filter and the window: Einziger, Friedman, Manes, "TinyLFU: A
	// Highly Efficient Cache Admission Policy", ACM TOS 2017.
	Filtered Admission = iota

	// Always lets every new entry stay, which leaves plain SIEVE.
	Always
)

// String returns the name: "filtered" or "always".
func (a Admission) String() string {
	switch a {
	case Filtered:
		return "filtered"
	case Always:
		return "always"
	default:
		return "unknown"
	}
}

// Options are what [NewWith] is told. Capacity must be set.
type Options struct {
	// Capacity is the most entries held, over all shards; at least 1. Memory is taken
	// as entries come: a shard that has no more room doubles it, with its writers waiting
	// and, for that long, a second copy of each of its entries and keys, without what they
	// point to.
	Capacity int

	// Admission says which new entries may stay. Zero: [Filtered].
	Admission Admission

	// Shards is how many parts, each with its own lock for writers and its share of
	// Capacity, the entries are spread over by hash; a power of two of at most Capacity
	// and 65,536. Each part evicts on its own, so that only 1 gives the exact order.
	// Zero: a few for each core where Capacity allows.
	Shards int
}

// Validate returns what is wrong with the options, or nil.
func (o Options) Validate() error {
	switch {
	case o.Capacity < 1:
		return fmt.Errorf("sieve: Capacity %d: want the number of entries to hold, at least 1", o.Capacity)
	case o.Admission > Always:
		return fmt.Errorf("sieve: Admission %d: want Filtered or Always", o.Admission)
	case o.Shards < 0 || o.Shards > min(mostShards, o.Capacity) || o.Shards&(o.Shards-1) != 0:
		return fmt.Errorf("sieve: Shards %d: want a power of two, at most %d, or zero to leave it to the store", o.Shards, min(mostShards, o.Capacity))
	}
	return nil
}

const (
	// shardsPerCore makes it rare that two writers want one shard at a time.
	shardsPerCore = 8
	// leastPerShard keeps shards so large that chance fills them about alike; the
	// hit ratio is then that of one shard, to a few per mille.
	leastPerShard = 512
	// mostShards is far more than there are cores, and leaves the hash's other bits to
	// the table.
	mostShards = 1 << 16
)

func (o Options) shards() int {
	if o.Shards > 0 {
		return o.Shards
	}
	n := 1
	for n < shardsPerCore*runtime.GOMAXPROCS(0) && 2*n*leastPerShard <= o.Capacity {
		n *= 2
	}
	return n
}

// Store is an in-memory [tier.Store] bounded by the number of entries. Besides, it
// can be cleared, measured and resized.
type Store[K comparable, V any] struct {
	keys    tier.Hasher[K]
	shards  []shard[K, V] // a power of two of them, at least one
	invalid error

	_        [64]byte // readers share the line above with nobody who writes
	expiry   expiry.Clock
	resizing sync.Mutex // or two at once could leave shares of both
}

// New returns a store that holds at most capacity entries.
func New[K comparable, V any](capacity int) *Store[K, V] {
	return NewWith[K, V](Options{Capacity: capacity})
}

// NewWith is [New] with options. If these are wrong, [Store.Validate] tells so, and
// all other methods answer with the same error.
func NewWith[K comparable, V any](o Options) *Store[K, V] {
	s := &Store[K, V]{
		keys:    tier.NewHasher[K](),
		invalid: o.Validate(),
	}
	if s.invalid != nil {
		s.shards = make([]shard[K, V], 1) // closed, as one without a table is
		return s
	}
	s.shards = make([]shard[K, V], o.shards())
	for i := range s.shards {
		s.shards[i].open(s.share(o.Capacity, i), o.Admission)
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

// Get implements [tier.Store]. It takes no lock and does not allocate.
func (s *Store[K, V]) Get(_ context.Context, key K) (*tier.Entry[V], error) {
	// The lines of GetPair, as a call is a tenth of a hit.
	if !s.keys.Comparable(key) {
		return nil, tier.ErrBadKey
	}
	hash := s.keys.Hash(key)
	t := s.shard(hash).rack.Load()
	if t == nil {
		return nil, s.closed()
	}
	pair, p := t.Find(hash, key)
	if pair == nil {
		return nil, nil
	}
	if !t.isVisited(p) {
		t.visit(p)
	}
	return pair.Entry(), nil
}

// GetPair implements [tier.PairStore].
func (s *Store[K, V]) GetPair(_ context.Context, key K) (*tier.Pair[K, V], error) {
	if !s.keys.Comparable(key) {
		return nil, tier.ErrBadKey
	}
	hash := s.keys.Hash(key)
	t := s.shard(hash).rack.Load()
	if t == nil {
		return nil, s.closed()
	}
	pair, p := t.Find(hash, key)
	if pair != nil && !t.isVisited(p) {
		t.visit(p)
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

// SetPair implements [tier.PairStore]. It takes no lock where the key is held, unless others
// write the key at the same time or its shard grows, and allocates nothing where the ttl does
// not cut the entry's life.
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
	for i := range s.shards {
		if !s.shards[i].clear() {
			return s.closed()
		}
	}
	return nil
}

// Usage implements [tier.Measurer].
func (s *Store[K, V]) Usage() tier.Usage {
	u := tier.Usage{Cost: -1, MaxCost: -1, Rejections: -1}
	for i := range s.shards {
		held, capacity, evicted := s.shards[i].usage()
		u.Entries += held
		u.MaxEntries += capacity
		u.Evictions += evicted
	}
	return u
}

// Eviction implements [tier.Evicting].
func (s *Store[K, V]) Eviction() string { return "sieve" }

// Resize implements [tier.Resizer]. What has no room any more is evicted at once, by
// SIEVE; of what the filter knows it keeps what it knows of the entries that stay. The
// writers of a shard wait while it is resized, with a second copy of its entries as when it
// grows, readers never. The number of shards is for life, and each holds one entry at least,
// so a smaller capacity is an error.
func (s *Store[K, V]) Resize(capacity int64) error {
	switch {
	case s.invalid != nil:
		return s.invalid
	case capacity < int64(len(s.shards)):
		return fmt.Errorf("sieve: Resize to %d: want at least %d, one entry for each shard", capacity, len(s.shards))
	}
	most := int(min(capacity, math.MaxInt))
	s.resizing.Lock()
	defer s.resizing.Unlock()
	for i := range s.shards {
		if !s.shards[i].resize(s.share(most, i)) {
			return s.closed()
		}
	}
	return nil
}

// Close implements [tier.Store]. It lets go of all entries.
func (s *Store[K, V]) Close() error {
	for i := range s.shards {
		s.shards[i].close()
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

// shard picks by the low bits of the hash, of which the table uses the others.
func (s *Store[K, V]) shard(hash uint64) *shard[K, V] {
	return &s.shards[hash&uint64(len(s.shards)-1)]
}
