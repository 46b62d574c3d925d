package ristretto

import (
	"sync"
	"sync/atomic"

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

	_ [88]byte // keeps the cache lines of two shards apart
}

func (s *Store[K, V]) shard(hash uint64) *shard[K, V] { return &s.shards[hash%shards] }

// find returns the key's newest record, or nil when it has none.
func (sh *shard[K, V]) find(key K) *item[K, V] {
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

// write records a write and hands it to Ristretto; nil stands for a deletion.
func (s *Store[K, V]) write(key K, entry *tier.Entry[V], cost int64) error {
	if s.queued.Load() >= maxQueued {
		s.awaitRoom()
	}
	hash := s.hashOf(key)
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.closed.Load() {
		return s.closedError()
	}
	if s.update(sh, hash, key, entry, cost) {
		return nil
	}
	if sh.pending[key] == nil {
		sh.records.Add(1)
		s.engage()
	}
	s.offer(sh, hash, newItem(key, entry, cost))
	return nil
}

// update puts the entry into the item that Ristretto holds of the key, if nothing of
// that need be told to anybody: there is no record, the cost is the same, and the note
// of its end will do. That is most Sets of a key that is held, and costs a fifth of
// one that Ristretto is told of. It is called with the shard's mu held, so nobody
// else writes the key; if Ristretto lets the item go at this moment, the entry goes too,
// as it could at the next.
func (s *Store[K, V]) update(sh *shard[K, V], hash uint64, key K, entry *tier.Entry[V], cost int64) bool {
	if entry == nil || sh.pending[key] != nil || sh.settling[key] != nil {
		return false
	}
	it, ok := s.cache.Get(hash)
	if !ok || it.key != key || it.cost != cost {
		return false
	}
	mortal := isMortal(entry)
	if mortal != it.mortal || mortal && (it.noted() == 0 || it.noted() > slotOf(entry.UsableUntil())) {
		return false
	}
	it.entry.Store(entry)
	return true
}

// engage gives the settler one thing more to see to. It is called with a shard's mu
// held, and not after Close.
func (s *Store[K, V]) engage() {
	if s.dirty.Add(1) == 1 {
		s.settler.Go(s.settle)
	}
}

// call has the settler look at its notes. It is called as engage is.
func (s *Store[K, V]) call() {
	s.calls.Add(1)
	s.engage()
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
	if it.entry.Load() == nil {
		s.cache.Del(hash)
		return
	}
	s.cache.Set(hash, it, it.cost) // without a time to live: see expiry.go
}

// settle works in rounds until there is no record left and no call.
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
		calls := s.calls.Load()
		if calls > 0 && !s.sweep(writes) {
			calls = 0 // go on in the next round
		}
		s.cache.Wait()
		over, now := s.cache.RemainingCost() < 0, tier.Now()
		for i := range s.shards {
			sh := &s.shards[i]
			if sh.records.Load() == 0 {
				continue
			}
			sh.mu.Lock()
			n := s.settleShard(sh, over, now)
			sh.records.Add(-n)
			sh.mu.Unlock()
			settled += n
		}
		s.queued.Add(-writes)
		s.wakeWriters()
		s.calls.Add(-calls)
		settled += calls
		s.tidy(settled)
		if s.dirty.Add(-settled) == 0 {
			return
		}
	}
}

// settleShard checks what became of the shard's writes, and returns how many
// records it dropped. It is called with mu held.
func (s *Store[K, V]) settleShard(sh *shard[K, V], over bool, now tier.Instant) (dropped int64) {
	for key, it := range sh.settling {
		delete(sh.settling, key)
		if sh.pending[key] != nil {
			dropped++ // a later write's turn will come
			continue
		}
		hash := s.hashOf(key)
		held, ok := s.cache.Get(hash)
		mine := ok && held.key == key
		switch {
		case mine && held != it:
			s.cache.Del(hash) // older
			s.reject(it, now)
		case !mine:
			s.reject(it, now)
		case it.end() <= now:
			s.cache.Del(hash)
		case over:
			// Ristretto makes room for new keys only, so that entries that grow could
			// exceed MaxCost without bound. As a new key the entry has to compete.
			s.cache.Del(hash)
			it = newItem(key, it.entry.Load(), it.cost)
			s.offer(sh, hash, it)
			continue
		default:
			s.keep(hash, it, now)
		}
		dropped++
	}
	return dropped
}

// reject counts a write of which nothing is left.
func (s *Store[K, V]) reject(it *item[K, V], now tier.Instant) {
	if it.entry.Load() != nil && it.end() > now {
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
