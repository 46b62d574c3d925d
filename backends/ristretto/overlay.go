package ristretto

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/tier"
)

// The overlay holds the newest write of each key until it has settled. In a round
// the settler takes what was written so far, waits until Ristretto has worked off
// its queue, and then compares, key by key and with the key's writers locked out,
// what Ristretto holds with the record. If that is the record, or nothing, the
// record can go. If it is anything older, it is deleted first. So whenever a key
// has no record, no write of it is in Ristretto's queue, and Ristretto holds the
// last one or nothing.
//
// Keys with one hash share a shard, so the same lock keeps them apart.

// shards is how many locks the overlay has; as many as Ristretto's own map.
const shards = 256

// maxQueued is how many writes may be in Ristretto's queue. It holds 32,768 and
// drops what comes then, or blocks, so writers wait for the settler before that.
const maxQueued = 16_384

type shard[K comparable, V any] struct {
	mu       sync.Mutex
	pending  map[K]*item[K, V] // written since the round began
	settling map[K]*item[K, V] // written before
	writes   int64             // given to Ristretto since the round began
	records  atomic.Int64      // in both maps; read without mu

	_ [64]byte
}

func (s *Store[K, V]) shard(hash uint64) *shard[K, V] { return &s.shards[hash%shards] }

// find returns the key's newest record, or nil when it has none.
func (sh *shard[K, V]) find(key K) *item[K, V] {
	if sh.records.Load() == 0 {
		return nil
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if it := sh.pending[key]; it != nil {
		return it
	}
	return sh.settling[key]
}

// bury turns all records into deletions. It is called with mu held.
func (sh *shard[K, V]) bury() {
	for _, records := range []map[K]*item[K, V]{sh.pending, sh.settling} {
		for key := range records {
			records[key] = &item[K, V]{key: key}
		}
	}
}

// write records the item and hands it to Ristretto.
func (s *Store[K, V]) write(it *item[K, V]) error {
	if s.queued.Load() >= maxQueued {
		s.awaitRoom()
	}
	hash := s.hash(it.key)
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.closed.Load() {
		return s.closedError()
	}
	if sh.pending[it.key] == nil {
		sh.records.Add(1)
		if s.dirty.Add(1) == 1 {
			s.settler.Go(s.settle)
		}
	}
	s.offer(sh, hash, it)
	return nil
}

// offer records the item as pending, and sets or deletes it in Ristretto. It is
// called with the shard's mu held, so that Ristretto sees a key's writes in order.
func (s *Store[K, V]) offer(sh *shard[K, V], hash uint64, it *item[K, V]) {
	if sh.pending == nil {
		sh.pending = make(map[K]*item[K, V])
	}
	sh.pending[it.key] = it
	sh.writes++
	s.queued.Add(1)
	if it.entry == nil {
		s.cache.Del(hash)
		return
	}
	var ttl time.Duration // zero: none
	if until := it.entry.UsableUntil(); until != tier.Never {
		// An entry that died meanwhile gets the shortest ttl, as a negative one would
		// leave the older value in place.
		ttl = max(1, until.Sub(tier.Now()))
	}
	s.cache.SetWithTTL(hash, it, it.cost, ttl)
}

// settle works in rounds until there is no record left.
func (s *Store[K, V]) settle() {
	for {
		var writes, settled int64
		for i := range s.shards {
			sh := &s.shards[i]
			if sh.records.Load() == 0 {
				continue
			}
			sh.mu.Lock()
			sh.pending, sh.settling = sh.settling, sh.pending // settling is empty between rounds
			writes += sh.writes
			sh.writes = 0
			sh.mu.Unlock()
		}
		s.cache.Wait()
		over := s.cache.RemainingCost() < 0
		for i := range s.shards {
			sh := &s.shards[i]
			if sh.records.Load() == 0 {
				continue
			}
			sh.mu.Lock()
			n := s.settleShard(sh, over)
			sh.records.Add(-n)
			sh.mu.Unlock()
			settled += n
		}
		s.queued.Add(-writes)
		s.wakeWriters()
		if s.dirty.Add(-settled) == 0 {
			return
		}
	}
}

// settleShard checks what became of the shard's writes, and returns how many
// records it dropped. It is called with mu held.
func (s *Store[K, V]) settleShard(sh *shard[K, V], over bool) (dropped int64) {
	for key, it := range sh.settling {
		delete(sh.settling, key)
		if sh.pending[key] != nil {
			dropped++ // a later write's turn will come
			continue
		}
		hash := s.hash(key)
		held, ok := s.cache.Get(hash)
		mine := ok && held.key == key
		switch {
		case mine && held != it:
			s.cache.Del(hash) // older
			s.reject(it)
		case !mine:
			s.reject(it)
		case over:
			// Ristretto makes room for new keys only, so that entries that grow could
			// exceed MaxCost without bound. As a new key the entry has to compete.
			s.cache.Del(hash)
			it = &item[K, V]{key: key, entry: it.entry, cost: it.cost}
			s.offer(sh, hash, it)
			continue
		default:
			if it.state.CompareAndSwap(uncounted, counted) {
				s.entries.Add(1)
			}
		}
		dropped++
	}
	return dropped
}

// reject counts a write of which nothing is left.
func (s *Store[K, V]) reject(it *item[K, V]) {
	if it.entry != nil && it.entry.UsableUntil() > tier.Now() {
		s.rejections.Add(1)
	}
}

// awaitRoom waits while Ristretto's queue is long. A settler is at work then.
func (s *Store[K, V]) awaitRoom() {
	s.room.L.Lock()
	defer s.room.L.Unlock()
	for s.queued.Load() >= maxQueued && !s.closed.Load() {
		s.room.Wait()
	}
}

func (s *Store[K, V]) wakeWriters() {
	s.room.L.Lock()
	defer s.room.L.Unlock()
	s.room.Broadcast()
}

func (s *Store[K, V]) lockShards() {
	for i := range s.shards {
		s.shards[i].mu.Lock()
	}
}

func (s *Store[K, V]) unlockShards() {
	for i := range s.shards {
		s.shards[i].mu.Unlock()
	}
}
