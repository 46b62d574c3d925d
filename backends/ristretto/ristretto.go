// Package ristretto is a tier in this process's memory, bounded by cost:
// dgraph-io/ristretto, which admits what is used often (TinyLFU) and evicts by
// sampled LFU.
//
// Ristretto queues the writes of new keys, drops some, and forgets that it was told
// of others, so by itself it can give back an older value after a Set, or a value
// after its Delete. The [Store] keeps each write at hand until Ristretto has worked
// it off and what came of it has been checked (see overlay.go), so a read gives the
// last value written, or nothing.
//
// Reads do not look at the clock. They find an entry whose life is over until it is
// removed, some four seconds later unless very many die at once (see expiry.go).
package ristretto

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"

	"github.com/terracecache/terrace/backends/internal/expiry"
	"github.com/terracecache/terrace/tier"
)

// Options are what [New] is told. MaxCost must be set.
type Options[K comparable, V any] struct {
	// MaxCost is the most that the entries may cost together, in the unit of Cost;
	// at least 1.
	MaxCost int64

	// Cost returns what an entry costs; less than 1 counts as 1. It may be called
	// concurrently. Nil: an estimate of the bytes of the heap that the entry takes, with
	// all that its key and value lead to and what this store and Ristretto need for it.
	// MaxCost then counts also the counters and what an empty store takes, half a MiB, as
	// far as half of it; and when the store is full, and its last writes have settled,
	// the heap is within a quarter of MaxCost, if that is 8 MiB or more. What values share
	// with each other or with others counts for each of them; what is behind a lock, an
	// atomic or in a func does not count.
	Cost func(key K, entry *tier.Entry[V]) int64

	// NumCounters is how many keys' use is counted to decide what to admit; ten for
	// each entry held is good. A counter takes 3 to 6 bytes. It is for life: after a
	// Resize to many more entries what to admit is decided less well. Zero: from MaxCost,
	// between 1 thousand and 4 million; where Cost is nil, of a sixteenth of its bytes.
	NumCounters int64

	// Hash returns a key's hash. Keys with one hash take turns in one place, so a
	// bad one costs hits, nothing else. Nil: that of a [tier.Hasher].
	Hash func(K) uint64
}

// Validate returns what is wrong with the options, or nil.
func (o Options[K, V]) Validate() error {
	switch {
	case o.MaxCost < 1:
		return fmt.Errorf("ristretto: MaxCost %d: want the most that the entries may cost together, at least 1", o.MaxCost)
	case o.NumCounters < 0 || o.NumCounters > maxCounters:
		return fmt.Errorf("ristretto: NumCounters %d: want at most %d, or zero to leave it to the store", o.NumCounters, maxCounters)
	}
	return nil
}

const maxCounters int64 = 1 << 32

func (o Options[K, V]) counters() int64 {
	const least, most = 1 << 10, 1 << 22
	switch {
	case o.NumCounters > 0:
		return o.NumCounters
	case o.Cost == nil:
		return min(max(int64(1)<<bits.Len64(uint64(o.MaxCost/(16*counterSize)))/2, least), most)
	case o.MaxCost > most/10:
		return most
	default:
		return max(10*o.MaxCost, least)
	}
}

// Store is an in-memory [tier.Store] bounded by cost. Besides, it can be cleared,
// measured and resized.
type Store[K comparable, V any] struct {
	keys    tier.Hasher[K]
	hash    func(K) uint64 // nil: that of keys
	cost    func(K, *tier.Entry[V]) int64
	reserve int64 // of MaxCost, for what is no entry's
	invalid error
	deleted *item[K, V]  // the record of each deletion
	cache   *cache[K, V] // nil when Close is done with it
	closed  atomic.Bool  // set under all shards' locks
	_       [128]byte    // what each Get reads stays clear of what others write

	gates   gates               // held by who reads the cache
	shards  [shards]shard[K, V] // what is not settled yet
	room    *sync.Cond          // broadcast when queued falls
	queued  atomic.Int64        // writes given to Ristretto since it was last waited for
	calls   atomic.Int64        // to the settler, to look at its notes
	dirty   atomic.Int64        // records in the shards, and calls; above zero while a settler runs
	settler sync.WaitGroup
	notes   notes
	expiry  expiry.Clock

	maxCost    atomic.Int64
	clearing   atomic.Bool
	entries    atomic.Int64
	mortals    atomic.Int64 // those entries that have an end
	evictions  atomic.Int64
	rejections atomic.Int64
}

type cache[K comparable, V any] = ristretto.Cache[uint64, *item[K, V]]

// item is what Ristretto holds under a key's hash. It is the key in its pair that tells whose
// entry it is: Ristretto itself does not keep keys.
type item[K comparable, V any] struct {
	pair  atomic.Pointer[tier.Pair[K, V]] // always of the same key; nil where deleted
	cost  int64
	state atomic.Int32  // of how Usage counts it
	slot  atomic.Uint32 // under which it is noted

	mortal  bool // its entries have an end; told here, as a Set need not look at the old one then
	again   bool // it was held before, and is no write
	deleted bool // it stands for all deletions, and is never given to Ristretto
}

func newItem[K comparable, V any](pair *tier.Pair[K, V], cost int64) *item[K, V] {
	it := &item[K, V]{cost: cost, mortal: isMortal(pair)}
	it.pair.Store(pair)
	return it
}

func isMortal[K comparable, V any](pair *tier.Pair[K, V]) bool {
	return pair.Entry().UsableUntil() != tier.Never
}

func (it *item[K, V]) key() K { return it.pair.Load().Key() }

func (it *item[K, V]) end() tier.Instant { return it.pair.Load().Entry().UsableUntil() }

// noted returns the slot under which the settler has a note of the item, or zero.
func (it *item[K, V]) noted() slot { return slot(it.slot.Load()) }

func (it *item[K, V]) note(at slot) { it.slot.Store(uint32(at)) }

const (
	uncounted int32 = iota
	counted
	moving // counted, and about to come in anew
	gone
)

// New returns a store. If the options are wrong, [Store.Validate] tells so, and all
// other methods answer with the same error.
func New[K comparable, V any](o Options[K, V]) *Store[K, V] {
	s := &Store[K, V]{
		keys:    tier.NewHasher[K](),
		hash:    o.Hash,
		cost:    o.Cost,
		room:    sync.NewCond(new(sync.Mutex)),
		invalid: o.Validate(),
		deleted: &item[K, V]{deleted: true},
	}
	s.maxCost.Store(o.MaxCost)
	if s.cost == nil {
		s.cost = estimate[K, V]()
	}
	if s.invalid == nil {
		if o.Cost == nil {
			s.reserve = emptyStore + counterBytes(o.counters())
		}
		s.cache, s.invalid = ristretto.NewCache(&ristretto.Config[uint64, *item[K, V]]{
			NumCounters:        o.counters(),
			MaxCost:            s.forEntries(o.MaxCost),
			BufferItems:        64,
			IgnoreInternalCost: true, // Cost has its own unit, and estimate counts it
			KeyToHash:          func(hash uint64) (uint64, uint64) { return hash, 0 },
			ShouldUpdate:       s.inherit,
			OnEvict:            s.onEvict,
			OnReject:           s.onReject,
			OnExit:             s.onExit,

			// Its search for the dead would find none, and wake an idle process.
			TtlTickerDurationInSec: 1 << 32,
		})
	}
	s.closed.Store(s.invalid != nil)
	return s
}

// Validate returns what is wrong with the options, or nil.
func (s *Store[K, V]) Validate() error { return s.invalid }

// Local implements [tier.Local].
func (s *Store[K, V]) Local() bool { return true }

// EndsByEntry implements [tier.EndsByEntry].
func (s *Store[K, V]) EndsByEntry() bool { return true }

// Eviction implements [tier.Evicting].
func (s *Store[K, V]) Eviction() string { return "tinylfu" }

// forEntries returns how much of the greatest cost is for entries.
func (s *Store[K, V]) forEntries(maxCost int64) int64 { return maxCost - min(s.reserve, maxCost/2) }

// Get implements [tier.Store]. It does not allocate, nor look at the clock.
func (s *Store[K, V]) Get(ctx context.Context, key K) (*tier.Entry[V], error) {
	pair, err := s.GetPair(ctx, key)
	return pair.Entry(), err
}

// GetPair implements [tier.PairStore].
func (s *Store[K, V]) GetPair(_ context.Context, key K) (*tier.Pair[K, V], error) {
	if !s.keys.Comparable(key) {
		return nil, tier.ErrBadKey
	}
	hash := s.hashOf(key)
	// First what is not settled: in the other order a record could be dropped between
	// the two looks, after Ristretto showed an older value.
	if sh := s.shard(hash); sh.records.Load() > 0 {
		if it := sh.find(key); it != nil {
			return it.pair.Load(), nil
		}
	}
	gate := s.gates.enter()
	if s.closed.Load() {
		gate.RUnlock()
		return nil, s.closedError()
	}
	it, ok := s.cache.Get(hash)
	gate.RUnlock() // not deferred, which costs: nothing here panics
	if !ok {
		return nil, nil
	}
	pair := it.pair.Load()
	if pair.Key() != key {
		return nil, nil
	}
	return pair, nil
}

func (s *Store[K, V]) hashOf(key K) uint64 {
	if s.hash != nil {
		return s.hash(key)
	}
	return s.keys.Hash(key)
}

// Set implements [tier.Store]. The entry may be given up at once when what is there
// is used more often, and is when it costs more than MaxCost: that is no error, and
// counted in Usage. A key that does not equal itself (NaN) is a [tier.ErrBadKey].
func (s *Store[K, V]) Set(ctx context.Context, key K, entry *tier.Entry[V], ttl time.Duration) error {
	if ttl <= 0 || entry == nil {
		return s.Delete(ctx, key)
	}
	return s.SetPair(ctx, tier.PairOf(key, entry), ttl)
}

// SetPair implements [tier.PairStore]. It allocates nothing where the key is held, the cost is
// the same and the ttl does not cut the entry's life.
func (s *Store[K, V]) SetPair(ctx context.Context, pair *tier.Pair[K, V], ttl time.Duration) error {
	key := pair.Key()
	if ttl <= 0 {
		return s.Delete(ctx, key)
	}
	if !s.keys.Storable(key) {
		return tier.ErrBadKey
	}
	pair = pair.Capped(s.expiry.Until(pair.Entry().UsableUntil(), ttl))
	cost := max(1, s.cost(key, pair.Entry()))
	if cost > s.forEntries(s.maxCost.Load()) {
		s.rejections.Add(1)
		return s.Delete(ctx, key)
	}
	return s.write(key, pair, cost)
}

// Itself implements [tier.PairStore].
func (s *Store[K, V]) Itself() tier.Store[K, V] { return s }

// Delete implements [tier.Store].
func (s *Store[K, V]) Delete(_ context.Context, key K) error {
	switch {
	case !s.keys.Comparable(key):
		return tier.ErrBadKey
	case s.closed.Load():
		return s.closedError()
	case !s.keys.Storable(key):
		return nil // nothing can be there
	}
	return s.write(key, nil, 0)
}

// Usage implements [tier.Measurer]. Entries and Cost lag behind the last writes.
// Rejections counts the writes of which nothing was left when they had settled. Where the
// cost is the estimate, Cost is below MaxCost in a full store by what is no entry's.
func (s *Store[K, V]) Usage() tier.Usage {
	u := tier.Usage{
		MaxEntries: -1,
		MaxCost:    s.maxCost.Load(),
		Evictions:  s.evictions.Load(),
		Rejections: s.rejections.Load(),
	}
	defer s.gates.enter().RUnlock()
	if !s.closed.Load() {
		u.Entries = max(0, s.entries.Load())
		u.Cost = max(0, s.cache.MaxCost()-s.cache.RemainingCost())
	}
	return u
}

// Pending returns how many writes have not settled: Ristretto has not worked them off, or
// what came of them has not been checked. It is for those who measure, and want the store
// to be judged by what it keeps and not by when: they wait until it is zero, which nobody
// tells them. Reads that meet a write that has not settled find it beside what the store
// may hold.
func (s *Store[K, V]) Pending() int64 { return s.dirty.Load() }

// Resize implements [tier.Resizer], in the unit of Cost. What has no room any more is
// evicted in the background, mostly what is used least: within milliseconds, or seconds
// where hundreds of thousands of entries go or writers are at it all the time. The
// counters stay as many as they are, and so do the places in maps, and beside them, until a
// Clear: about 180 bytes of the heap for each entry that was ever held at a time.
func (s *Store[K, V]) Resize(capacity int64) error {
	sh := &s.shards[0] // any: Close holds them all
	sh.mu.Lock()
	defer sh.mu.Unlock()
	switch {
	case s.closed.Load():
		return s.closedError()
	case capacity < 1:
		return fmt.Errorf("ristretto: Resize to %d: want at least 1", capacity)
	}
	s.maxCost.Store(capacity)
	if most := s.forEntries(capacity); most > s.cache.MaxCost() {
		s.cache.UpdateMaxCost(most)
	}
	s.call() // to make room
	return nil
}

// Clear implements [tier.Clearer]. It waits for no reader, and writers wait for it.
func (s *Store[K, V]) Clear(context.Context) error {
	s.lockShards()
	defer s.unlockShards()
	if s.closed.Load() {
		return s.closedError()
	}
	for i := range s.shards {
		s.shards[i].bury(s.deleted)
		s.shards[i].shortcuts.drop()
	}
	s.clearing.Store(true)
	s.cache.Clear()
	s.clearing.Store(false)
	s.call() // to drop the notes
	return nil
}

// Close implements [tier.Store]. It waits until what was written has settled, which
// takes milliseconds, and ends all goroutines.
func (s *Store[K, V]) Close() error {
	s.lockShards()
	first := !s.closed.Swap(true)
	s.unlockShards()
	s.wakeWriters()
	s.settler.Wait()
	s.gates.lock()
	defer s.gates.unlock()
	if first {
		s.notes.stop()
		s.cache.Close()
		s.cache = nil
		s.entries.Store(0)
	}
	return nil
}

// closedError returns the answer of a store that is closed or never was right.
func (s *Store[K, V]) closedError() error {
	if s.invalid != nil {
		return s.invalid
	}
	return tier.ErrClosed
}

// onEvict is called by Ristretto for what had to make room, and what was cleared.
func (s *Store[K, V]) onEvict(i *ristretto.Item[*item[K, V]]) {
	if i.Value != nil && s.leave(i.Value) != moving && !s.clearing.Load() {
		s.evictions.Add(1)
	}
}

// onReject is called by Ristretto for what it does not admit.
func (s *Store[K, V]) onReject(i *ristretto.Item[*item[K, V]]) {
	if i.Value != nil && i.Value.again {
		s.evictions.Add(1)
	}
}

// onExit is called by Ristretto for each item that it lets go of, and for nil.
func (s *Store[K, V]) onExit(it *item[K, V]) {
	if it != nil {
		s.leave(it)
	}
}

// leave no longer counts an item, and returns what its state was.
func (s *Store[K, V]) leave(it *item[K, V]) (was int32) {
	if was = it.state.Swap(gone); was == counted || was == moving {
		hash := s.hashOf(it.key())
		s.shard(hash).shortcuts.forget(hash, it)
		s.entries.Add(-1)
		if it.mortal {
			s.mortals.Add(-1)
		}
	}
	return was
}
