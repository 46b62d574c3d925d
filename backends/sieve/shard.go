package sieve

import (
	"sync"
	"sync/atomic"

	"github.com/terracecache/terrace/backends/internal/index"
	"github.com/terracecache/terrace/tier"
)

// shard is a part of the entries. Readers use its table alone; its lock is the
// writers'. Methods that return open report false when it is closed.
//
// New nodes enter a window. Those that the window has no room for go on to the main
// queue, which evicts by SIEVE: a hand moves from the oldest node to the newest and
// evicts the first that had no hit since it came by last; nothing is ever moved for a
// hit. When both are full, the one that leaves the window and the one that the hand
// has come to contend for the place, and the sketch decides. The sketch is told of a
// key when its node is made, and of a hit only when the node is looked at for
// eviction, so that hits need not be counted where they happen.
//
// Source: Zhang et al., "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction
// Algorithm for Web Caches", NSDI 2024; for the window and the sketch see [Filtered].
type shard[K comparable, V any] struct {
	table atomic.Pointer[index.Table[K, record]] // nil when closed

	_ [64]byte // keeps what writers change off the line that every reader needs

	mu           sync.Mutex
	capacity     int
	windowRoom   int
	window, main index.Queue[K, record]
	hand         *index.Node[K, record] // of main; nil: the oldest
	sketch       *sketch                // nil where none is needed yet, or ever
	filtered     bool
	evicted      int64
	inserts      atomic.Uint64 // how many nodes were put into the table, each counted after that; read without mu

	_ [64]byte // keeps the next shard's table off this one's lock
}

const (
	// windowShare is the window's share of the capacity, 1 in so many.
	windowShare = 10
	// farthestHand bounds what one eviction costs when all have had hits.
	farthestHand = 1024
	// firstRoom is how many nodes a table is made for at first.
	firstRoom = 42
	// perSpare is for how many nodes the table has a place that is free.
	perSpare = 2
)

func (s *shard[K, V]) open(capacity int, a Admission) {
	s.filtered = a == Filtered
	s.setCapacity(capacity)
	s.table.Store(index.NewTable[K, record](min(firstRoom, capacity), perSpare))
}

func (s *shard[K, V]) setCapacity(capacity int) {
	s.capacity = capacity
	if s.filtered {
		s.windowRoom = max(1, capacity/windowShare)
	}
}

func (s *shard[K, V]) len() int { return s.window.Len + s.main.Len }

// set keeps the entry under the key.
func (s *shard[K, V]) set(key K, hash uint64, entry *tier.Entry[V]) (open bool) {
	inserts := s.inserts.Load() // before the table, which may be another when one more is counted
	t := s.table.Load()
	if t == nil {
		return false
	}
	old := t.Find(hash, key)
	switch {
	case old == nil:
		return s.put(newHolder(key, hash, entry), entry, old, inserts)
	case !old.Item.points:
		return s.put(newPointer(key, hash, entry), entry, old, inserts)
	default:
		// If the node goes at this moment, the entry goes too, as it could at the next.
		renew(old, entry)
		return true
	}
}

// put puts in the node, which has the entry, or the entry where another has put in a node
// that can take it. It is told what was found of the key when so many nodes had been put in.
func (s *shard[K, V]) put(n *index.Node[K, record], entry *tier.Entry[V], old *index.Node[K, record], inserts uint64) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.Load()
	if t == nil {
		return false
	}
	if old != nil || s.inserts.Load() != inserts { // else there is still none
		old = t.Find(n.Item.hash, n.Key)
	}
	if old != nil {
		if old.Item.points {
			renew(old, entry)
			return true
		}
		n.Item.visited.Store(1)
		n.Item.window = old.Item.window
		s.queueOf(old).Replace(old, n)
		if s.hand == old {
			s.hand = n
		}
		t.Replace(n.Item.hash, old, n)
		return true
	}
	if s.filtered && s.len() >= s.capacity/2 && !s.sketch.isFor(s.capacity) {
		s.renewSketch() // before there is something to decide
	}
	s.count(n)
	if s.len() >= s.capacity {
		s.makeRoom(t)
	}
	if s.len() >= t.Room() {
		t = t.Anew(min(2*t.Room(), s.capacity), hashOf)
		s.table.Store(t)
	}
	t.Insert(n.Item.hash, n)
	s.inserts.Add(1)
	if s.windowRoom == 0 {
		s.main.Push(n)
		return true
	}
	n.Item.window = true
	s.window.Push(n)
	if s.window.Len > s.windowRoom {
		s.promote(s.window.Oldest)
	}
	return true
}

// makeRoom evicts one node of a full shard before another enters. In a full shard the
// window is full as well, as nodes go on to the main queue only from a full window.
func (s *shard[K, V]) makeRoom(t *index.Table[K, record]) {
	victim, candidate := s.victim(), s.window.Oldest
	if candidate == nil {
		s.evict(t, victim)
		return
	}
	if victim == nil { // the window is all there is
		s.evict(t, candidate)
		return
	}
	if candidate.Item.visited.Load() != 0 {
		candidate.Item.visited.Store(0)
		s.count(candidate)
	}
	if s.sketch.estimate(candidate.Item.hash) > s.sketch.estimate(victim.Item.hash) {
		s.evict(t, victim)
		s.promote(candidate)
	} else {
		s.evict(t, candidate)
	}
}

// victim moves the hand to the node of the main queue that is to go next; nil when
// the queue is empty.
func (s *shard[K, V]) victim() *index.Node[K, record] {
	h := s.hand
	if h == nil {
		h = s.main.Oldest
	}
	for range farthestHand {
		if h == nil || h.Item.visited.Load() == 0 {
			break
		}
		h.Item.visited.Store(0)
		s.count(h)
		if h = h.Newer(); h == nil {
			h = s.main.Oldest
		}
	}
	s.hand = h
	return h
}

// renewSketch makes a sketch for the present capacity, which knows of the nodes that are
// held what the one before it knew.
func (s *shard[K, V]) renewSketch() {
	fresh := newSketch(s.capacity)
	if s.sketch != nil {
		for _, q := range []*index.Queue[K, record]{&s.window, &s.main} {
			for n := q.Newest; n != nil; n = n.Older() {
				fresh.learn(n.Item.hash, s.sketch.estimate(n.Item.hash))
			}
		}
	}
	s.sketch = fresh
}

// count tells the sketch of a request.
func (s *shard[K, V]) count(n *index.Node[K, record]) {
	if s.sketch != nil {
		s.sketch.add(n.Item.hash)
	}
}

// promote moves a node from the window to the main queue.
func (s *shard[K, V]) promote(n *index.Node[K, record]) {
	s.window.Remove(n)
	n.Item.window = false
	s.main.Push(n)
}

// demote moves the newest node of the main queue back to the window, as its oldest.
func (s *shard[K, V]) demote() {
	n := s.main.Newest
	if s.hand == n {
		s.hand = nil // after the newest comes the oldest
	}
	s.main.Remove(n)
	n.Item.window = true
	s.window.PushOldest(n)
}

// resize sets the capacity, evicts what has no room any more, and lets the queues, the
// sketch and the table follow.
func (s *shard[K, V]) resize(capacity int) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.Load()
	if t == nil {
		return false
	}
	less := capacity < s.capacity
	s.setCapacity(capacity)
	for s.window.Len > s.windowRoom {
		s.promote(s.window.Oldest)
	}
	for s.main.Len > s.capacity-s.windowRoom {
		if s.len() > s.capacity {
			s.evict(t, s.victim())
		} else {
			s.demote()
		}
	}
	if t.Room() > s.capacity {
		s.table.Store(t.Anew(s.capacity, hashOf))
	}
	// A sketch for more is made when there is more to know.
	if less && s.filtered && (s.sketch != nil || s.len() >= s.capacity/2) {
		s.renewSketch()
	}
	return true
}

func (s *shard[K, V]) evict(t *index.Table[K, record], n *index.Node[K, record]) {
	s.drop(t, n)
	s.evicted++
}

// drop takes a node out of the table and its queue, and the hand on to the next.
func (s *shard[K, V]) drop(t *index.Table[K, record], n *index.Node[K, record]) {
	t.Remove(n.Item.hash, n)
	if s.hand == n {
		s.hand = n.Newer()
	}
	s.queueOf(n).Remove(n)
}

func (s *shard[K, V]) queueOf(n *index.Node[K, record]) *index.Queue[K, record] {
	if n.Item.window {
		return &s.window
	}
	return &s.main
}

func (s *shard[K, V]) remove(hash uint64, key K) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.Load()
	if t == nil {
		return false
	}
	if n := t.Find(hash, key); n != nil {
		s.drop(t, n)
	}
	return true
}

func (s *shard[K, V]) clear() (open bool) {
	return s.restart(func() *index.Table[K, record] {
		return index.NewTable[K, record](min(firstRoom, s.capacity), perSpare)
	})
}

func (s *shard[K, V]) close() { s.restart(func() *index.Table[K, record] { return nil }) }

// restart lets go of all nodes and goes on with the given table, which is empty or nil.
func (s *shard[K, V]) restart(with func() *index.Table[K, record]) (open bool) {
	s.mu.Lock()
	if s.table.Load() == nil {
		s.mu.Unlock()
		return false
	}
	t := with()
	window, main := s.window, s.main
	s.window, s.main, s.hand, s.sketch = index.Queue[K, record]{}, index.Queue[K, record]{}, nil, nil
	s.table.Store(t)
	s.mu.Unlock()
	// This takes long, and no writer can come upon these nodes any more.
	window.Unlink()
	main.Unlink()
	return true
}

func (s *shard[K, V]) usage() (held, capacity, evicted int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.len()), int64(s.capacity), s.evicted
}
