package sieve

import (
	"sync"
	"sync/atomic"

	"github.com/terracecache/terrace/backends/internal/index"
	"github.com/terracecache/terrace/tier"
)

// shard is a part of the entries. Readers use its rack alone; its lock is the
// writers'. Methods that return open report false when it is closed.
//
// New pairs enter a window. Those that the window has no room for go on to the main
// queue, which evicts by SIEVE: a hand moves from the oldest place to the newest and
// evicts the first that had no hit since it came by last; nothing is ever moved for a
// hit. When both are full, the one that leaves the window and the one that the hand
// has come to contend for the place, and the sketch decides. The sketch is told of a
// key when it comes, and of a hit only when its place is looked at for
// eviction, so that hits need not be counted where they happen.
//
// Source: Zhang et al., "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction
// Algorithm for Web Caches", NSDI 2024; for the window and the sketch see [Filtered].
type shard[K comparable, V any] struct {
	rack atomic.Pointer[rack[K, V]] // nil when closed

	_ [64]byte // keeps what writers change off the line that every reader needs

	mu           sync.Mutex
	capacity     int
	windowRoom   int
	window, main index.Queue
	hand         index.Place // of main; zero: the oldest
	sketch       *sketch     // nil where none is needed yet, or ever
	filtered     bool
	evicted      int64
	inserts      atomic.Uint64 // how many pairs were put in under new keys, each counted after that; read without mu

	_ [64]byte // keeps the next shard's rack off this one's lock
}

const (
	// windowShare is the window's share of the capacity, 1 in so many.
	windowShare = 10
	// farthestHand bounds what one eviction costs when all have had hits.
	farthestHand = 1024
)

func (s *shard[K, V]) open(capacity int, a Admission) {
	s.filtered = a == Filtered
	s.setCapacity(capacity)
	s.rack.Store(newRack[K, V](min(firstRoom, capacity)))
}

func (s *shard[K, V]) setCapacity(capacity int) {
	s.capacity = capacity
	if s.filtered {
		s.windowRoom = max(1, capacity/windowShare)
	}
}

func (s *shard[K, V]) len() int { return s.window.Len + s.main.Len }

// set keeps the pair. It takes the lock only if the key is not held, or moves to another
// rack at this moment. If the pair that it replaces goes at this moment, the new one goes
// too, as it could at the next.
func (s *shard[K, V]) set(hash uint64, pair *tier.Pair[K, V]) (open bool) {
	inserts := s.inserts.Load() // before the rack, which may be another when one more is counted
	t := s.rack.Load()
	if t == nil {
		return false
	}
	found, renewed := t.renew(hash, pair)
	return renewed || s.put(hash, pair, found, inserts)
}

// put keeps the pair, in the place of another of its key or in one of its own. It is told
// whether one was found when so many new ones had been put in.
func (s *shard[K, V]) put(hash uint64, pair *tier.Pair[K, V], found bool, inserts uint64) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.rack.Load()
	if t == nil {
		return false
	}
	if found || s.inserts.Load() != inserts { // else there is still none
		// Others replace it without the lock, and nobody removes it.
		for old, p := t.Find(hash, pair.Key()); old != nil; old = t.At(p) {
			if t.Replace(p, old, pair) {
				t.visit(p)
				return true
			}
		}
	}
	if s.filtered && s.len() >= s.capacity/2 && !s.sketch.isFor(s.capacity) {
		s.renewSketch(t) // before there is something to decide
	}
	s.count(hash)
	if s.len() >= min(s.capacity, index.MostRoom) {
		s.makeRoom(t)
	}
	if s.len() >= t.Room() {
		t = s.moveTo(t, min(2*t.Room(), s.capacity))
	}
	p := t.insert(hash, pair)
	s.inserts.Add(1)
	t.setInWindow(p, s.windowRoom > 0)
	if s.windowRoom == 0 {
		s.main.Push(t.links, p)
		return true
	}
	s.window.Push(t.links, p)
	if s.window.Len > s.windowRoom {
		s.promote(t, s.window.Oldest)
	}
	return true
}

// moveTo moves all pairs to another rack, for more or for fewer, which must have room.
// Readers go on in the old one.
func (s *shard[K, V]) moveTo(t *rack[K, V], room int) *rack[K, V] {
	anew := newRack[K, V](room)
	moved := make([]index.Place, t.Places())
	t.moving.Store(true)
	t.Each(func(from index.Place) {
		to := anew.insert(t.hash(from), t.Seal(from))
		moved[from.Number()] = to
		anew.setInWindow(to, t.isInWindow(from))
		if t.isVisited(from) {
			anew.visit(to)
		}
	})
	to := func(p index.Place) index.Place { return moved[p.Number()] }
	s.window, s.main = s.window.Moved(t.links, anew.links, to), s.main.Moved(t.links, anew.links, to)
	if s.hand != 0 {
		s.hand = to(s.hand)
	}
	s.rack.Store(anew)
	return anew
}

// makeRoom evicts one pair of a full shard before another enters. In a full shard the
// window is full as well, as pairs go on to the main queue only from a full window.
func (s *shard[K, V]) makeRoom(t *rack[K, V]) {
	victim, candidate := s.victim(t), s.window.Oldest
	if candidate == 0 {
		s.evict(t, victim)
		return
	}
	if victim == 0 { // the window is all there is
		s.evict(t, candidate)
		return
	}
	if t.unvisit(candidate) {
		s.count(t.hash(candidate))
	}
	if s.sketch.estimate(t.hash(candidate)) > s.sketch.estimate(t.hash(victim)) {
		s.evict(t, victim)
		s.promote(t, candidate)
	} else {
		s.evict(t, candidate)
	}
}

// victim moves the hand to the place of the main queue that is to go next; zero when
// the queue is empty.
func (s *shard[K, V]) victim(t *rack[K, V]) index.Place {
	h := s.hand
	if h == 0 {
		h = s.main.Oldest
	}
	for range farthestHand {
		if h == 0 || !t.unvisit(h) {
			break
		}
		s.count(t.hash(h))
		if h = t.links.Newer(h); h == 0 {
			h = s.main.Oldest
		}
	}
	s.hand = h
	return h
}

// renewSketch makes a sketch for the present capacity, which knows of the keys that are
// held what the one before it knew.
func (s *shard[K, V]) renewSketch(t *rack[K, V]) {
	fresh := newSketch(s.capacity)
	if s.sketch != nil {
		for _, q := range []index.Queue{s.window, s.main} {
			for p := q.Newest; p != 0; p = t.links.Older(p) {
				fresh.learn(t.hash(p), s.sketch.estimate(t.hash(p)))
			}
		}
	}
	s.sketch = fresh
}

// count tells the sketch of a request.
func (s *shard[K, V]) count(hash uint64) {
	if s.sketch != nil {
		s.sketch.add(hash)
	}
}

// promote moves a place from the window to the main queue.
func (s *shard[K, V]) promote(t *rack[K, V], p index.Place) {
	s.window.Remove(t.links, p)
	t.setInWindow(p, false)
	s.main.Push(t.links, p)
}

// demote moves the newest place of the main queue back to the window, as its oldest.
func (s *shard[K, V]) demote(t *rack[K, V]) {
	p := s.main.Newest
	if s.hand == p {
		s.hand = 0 // after the newest comes the oldest
	}
	s.main.Remove(t.links, p)
	t.setInWindow(p, true)
	s.window.PushOldest(t.links, p)
}

// resize sets the capacity, evicts what has no room any more, and lets the queues, the
// sketch and the rack follow.
func (s *shard[K, V]) resize(capacity int) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.rack.Load()
	if t == nil {
		return false
	}
	less := capacity < s.capacity
	s.setCapacity(capacity)
	for s.window.Len > s.windowRoom {
		s.promote(t, s.window.Oldest)
	}
	for s.main.Len > s.capacity-s.windowRoom {
		if s.len() > s.capacity {
			s.evict(t, s.victim(t))
		} else {
			s.demote(t)
		}
	}
	if t.Room() > s.capacity {
		t = s.moveTo(t, s.capacity)
	}
	// A sketch for more is made when there is more to know.
	if less && s.filtered && (s.sketch != nil || s.len() >= s.capacity/2) {
		s.renewSketch(t)
	}
	return true
}

func (s *shard[K, V]) evict(t *rack[K, V], p index.Place) {
	s.drop(t, p)
	s.evicted++
}

// drop takes a pair out of the rack and its queue, and the hand on to the next.
func (s *shard[K, V]) drop(t *rack[K, V], p index.Place) {
	if s.hand == p {
		s.hand = t.links.Newer(p)
	}
	q := &s.main
	if t.isInWindow(p) {
		q = &s.window
	}
	q.Remove(t.links, p)
	t.drop(p)
}

func (s *shard[K, V]) remove(hash uint64, key K) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.rack.Load()
	if t == nil {
		return false
	}
	if pair, p := t.Find(hash, key); pair != nil {
		s.drop(t, p)
	}
	return true
}

func (s *shard[K, V]) clear() (open bool) {
	return s.restart(func() *rack[K, V] { return newRack[K, V](min(firstRoom, s.capacity)) })
}

func (s *shard[K, V]) close() { s.restart(func() *rack[K, V] { return nil }) }

// restart lets go of all pairs and goes on with the given rack, which is empty or nil.
func (s *shard[K, V]) restart(with func() *rack[K, V]) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rack.Load() == nil {
		return false
	}
	s.window, s.main, s.hand, s.sketch = index.Queue{}, index.Queue{}, 0, nil
	s.rack.Store(with())
	return true
}

func (s *shard[K, V]) usage() (held, capacity, evicted int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.len()), int64(s.capacity), s.evicted
}
