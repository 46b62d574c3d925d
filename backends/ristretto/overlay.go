package ristretto

import (
	"math/rand/v2"
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
	large    bool              // the maps have grown; of the settler
	records  atomic.Int64      // in both maps; read without mu

	shortcuts shortcuts[K, V]

	_ [72]byte // keeps the cache lines of two shards apart
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

// bury turns all records into that of a deletion. It is called with mu held.
func (sh *shard[K, V]) bury(deleted *item[K, V]) {
	for _, records := range []map[K]*item[K, V]{sh.pending, sh.settling} {
		for key := range records {
			records[key] = deleted
		}
	}
}

// write records a write and hands it to Ristretto; nil stands for a deletion.
func (s *Store[K, V]) write(key K, pair *tier.Pair[K, V], cost int64) error {
	if s.queued.Load() >= maxQueued {
		s.awaitRoom()
	}
	hash := s.hashOf(key)
	sh := s.shard(hash)
	var it *item[K, V]
	if pair != nil {
		// These waits for memory are not under the lock.
		it = sh.shortcuts.find(hash, key)
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.closed.Load() {
		return s.closedError()
	}
	if pair != nil && s.update(sh, hash, key, pair, cost, it) {
		return nil
	}
	if sh.pending[key] == nil {
		sh.records.Add(1)
		s.engage()
	}
	if pair == nil {
		s.offer(sh, hash, key, s.deleted)
	} else {
		s.offer(sh, hash, key, newItem(pair, cost))
	}
	return nil
}

// update puts the pair into the item that Ristretto holds of the key, if nothing of
// that need be told to anybody: there is no record, the cost is the same, and the note
// of its end will do. That is most Sets of a key that is held, and costs a fifth of
// one that Ristretto is told of. It is called with the shard's mu held, so nobody
// else writes the key; if Ristretto lets the item go at this moment, the entry goes too,
// as it could at the next. The item is what a shortcut led to before the lock was taken: it
// may be nil, or have gone.
func (s *Store[K, V]) update(sh *shard[K, V], hash uint64, key K, pair *tier.Pair[K, V], cost int64, it *item[K, V]) bool {
	if sh.records.Load() > 0 && (sh.pending[key] != nil || sh.settling[key] != nil) {
		return false
	}
	if it == nil || it.state.Load() != counted {
		var ok bool
		if it, ok = s.cache.Get(hash); !ok || it.key() != key {
			return false
		}
		sh.shortcuts.keep(hash, it, s.entries.Load(), s.hashOf)
	}
	if it.cost != cost {
		return false
	}
	mortal := isMortal(pair)
	if mortal != it.mortal || mortal && (it.noted() == 0 || it.noted() > slotOf(pair.Entry().UsableUntil())) {
		return false
	}
	it.pair.Store(pair)
	return true
}

// held returns what Ristretto holds, for a look of our own. Its Get counts as a use of the
// key, so it is not asked for what it has just refused: that would be admitted in the place
// of what is read.
func (s *Store[K, V]) held(hash uint64) (*item[K, V], bool) {
	if _, ok := s.cache.GetTTL(hash); !ok {
		return nil, false
	}
	return s.cache.Get(hash)
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
func (s *Store[K, V]) offer(sh *shard[K, V], hash uint64, key K, it *item[K, V]) {
	if sh.pending == nil {
		sh.pending = make(map[K]*item[K, V])
	}
	sh.pending[key] = it
	sh.writes++
	s.queued.Add(1)
	if it.deleted {
		s.cache.Del(hash)
		return
	}
	s.cache.Set(hash, it, it.cost) // without a time to live: see expiry.go
}

// settle works in rounds until there is no record left and no call.
func (s *Store[K, V]) settle() {
	overs := 0       // rounds in a row in which Ristretto held more than it may
	lowered := false // what it may hold, in the last round
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
		if !over {
			overs, lowered = 0, s.lower()
		} else if overs++; lowered || overs > 1 || s.dirty.Load() == settled+calls {
			s.crowd(1 << min(overs, mostCrowd))
		}
		if s.dirty.Load() == settled+calls {
			s.shed()
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
	sh.large = sh.large || len(sh.settling) > fewRecords
	for key, it := range sh.settling {
		delete(sh.settling, key)
		if sh.pending[key] != nil {
			dropped++ // a later write's turn will come
			continue
		}
		hash := s.hashOf(key)
		held, ok := s.held(hash)
		mine := ok && held.key() == key
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
			s.offer(sh, hash, key, newItem(it.pair.Load(), it.cost))
			continue
		default:
			s.keep(hash, it, now)
			sh.shortcuts.keep(hash, it, s.entries.Load(), s.hashOf)
		}
		dropped++
	}
	return dropped
}

// fewRecords is how many a shard's maps may have had to be kept when they are empty.
const fewRecords = 16

// shed lets go of what many writes at a time have made the overlay grow to: maps do not
// shrink, and all of them could take megabytes.
func (s *Store[K, V]) shed() {
	for i := range s.shards {
		sh := &s.shards[i]
		if !sh.large {
			continue
		}
		sh.mu.Lock()
		if len(sh.pending)+len(sh.settling) == 0 {
			sh.pending, sh.settling, sh.large = nil, nil, false
		}
		sh.mu.Unlock()
	}
}

// lower has Ristretto hold a little less, until that is what a Resize has asked for, and
// reports whether it did. One entry that is used much and comes in anew makes all the room
// that is wanting, and then evicts of others that are used as much those that it happens
// to see; so not all of it may be wanting at once.
func (s *Store[K, V]) lower() bool {
	const step = 32
	sh := &s.shards[0] // any: Close holds them all
	sh.mu.Lock()
	defer sh.mu.Unlock()
	target, most := s.forEntries(s.maxCost.Load()), s.cache.MaxCost()
	if most <= target || s.closed.Load() {
		return false
	}
	held := most - s.cache.RemainingCost()
	s.cache.UpdateMaxCost(max(target, min(most, held)-held/step-1))
	s.call() // to see what came of it
	return true
}

// mostCrowd is how many times the entries that come in anew are doubled in number: 4,096
// of them are in Ristretto's queue beside the writes, twice.
const mostCrowd = 12

// spread is among how many entries those that come in anew are chosen, about.
const spread = 4096

// crowd makes Ristretto evict when it holds more than it may, after a Resize: it makes
// room for new keys only, so n of the entries that it holds have to come in anew. Each of
// them evicts what is used less until there is room, or has to go itself.
func (s *Store[K, V]) crowd(n int) {
	// Not always the first ones, whose use would be overrated.
	items := s.some(n, rand.Int64N(max(1, min(s.entries.Load()-int64(n), spread))))
	if len(items) == 0 { // many have just gone
		items = s.some(n, 0)
	}
	for _, it := range items {
		key := it.key()
		hash := s.hashOf(key)
		sh := s.shard(hash)
		sh.mu.Lock()
		// Its state says that it is still held; to Get it would count as use.
		if sh.pending[key] == nil && sh.settling[key] == nil && !s.closed.Load() && it.state.CompareAndSwap(counted, moving) {
			again := newItem(it.pair.Load(), it.cost)
			again.again = true
			s.cache.Del(hash)
			sh.records.Add(1)
			s.engage()
			s.offer(sh, hash, key, again)
		}
		sh.mu.Unlock()
	}
}

// some returns up to n of what Ristretto holds, after the first ones.
func (s *Store[K, V]) some(n int, skip int64) []*item[K, V] {
	items := make([]*item[K, V], 0, n)
	s.cache.IterValues(func(it *item[K, V]) (stop bool) {
		if skip--; skip < 0 {
			items = append(items, it)
		}
		return len(items) == n
	})
	return items
}

// reject counts a write of which nothing is left.
func (s *Store[K, V]) reject(it *item[K, V], now tier.Instant) {
	if !it.deleted && it.end() > now && !it.again {
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
