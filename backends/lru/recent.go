package lru

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/terracecache/terrace/backends/internal/index"
	"github.com/terracecache/terrace/tier"
)

// recent is a shard that evicts the least recently used entry, or one hardly used later.
// Readers find entries in an index without a lock; the order of use is a list through the
// index's nodes, behind the lock.
//
// A hit leaves its entry where it is while no more than slack others have come to the
// front since the entry did: most hits of a skewed load are of entries near the front,
// which are far from being evicted. While a quarter of the shard is free hits move
// nothing, but mark their entry as used; so do those that find the lock taken. A marked
// entry at the end goes to the front instead of being evicted, for once.
type recent[K comparable, V any] struct {
	index atomic.Pointer[index.Table[K, record[V]]] // nil when closed
	moves atomic.Uint32                             // how often an entry came to the front
	slack atomic.Uint32

	_ [64]byte // keeps the lock off the line that every reader needs

	mu       sync.Mutex
	hash     func(K) uint64
	order    index.Queue[K, record[V]]
	capacity int
	evicted  int64

	_ [64]byte // keeps the next shard's index off this one's lock
}

// record is what a node holds besides its key.
type record[V any] struct {
	entry   atomic.Pointer[tier.Entry[V]]
	movedAt atomic.Uint32 // which of the shard's moves was its last
	used    atomic.Bool   // there was a hit since that moved nothing, and should have
}

func (r *record[V]) use() {
	if !r.used.Load() {
		r.used.Store(true)
	}
}

const (
	// firstRoom is how many nodes an index is made for at first.
	firstRoom = 42
	// perSpare is for how many nodes the index has a place that is free.
	perSpare = 2
	// frontShare is the part of a full shard, 1 in so many, that hits leave where it is.
	// That costs no hits that can be told from what shards cost; a quarter instead of an
	// eighth costs a tenth of a point, and half of it some tenths (docs/decisions.md).
	frontShare = 8
	// freeShare is the part of a shard, 1 in so many, that must be free for its order to
	// be nobody's concern yet.
	freeShare = 4
	// unordered is the slack of a shard with so much free.
	unordered = math.MaxUint32
	// sparedBySet is how many marked entries a Set spares at most once there is no quarter
	// free any more. The marks are of the time before, and so are to be redeemed before
	// newer hits, which leave none, have to count.
	sparedBySet = 16
	// sparedByEviction bounds what one eviction costs when all are marked.
	sparedByEviction = 1024
)

func newRecent[K comparable, V any](capacity int, hash func(K) uint64) *recent[K, V] {
	s := &recent[K, V]{capacity: capacity, hash: hash}
	s.restart()
	return s
}

// restart is for who holds the lock, or nobody knows of the shard yet.
func (s *recent[K, V]) restart() {
	s.order = index.Queue[K, record[V]]{}
	s.index.Store(index.NewTable[K, record[V]](min(firstRoom, s.capacity), perSpare))
	s.setSlack()
}

// setSlack follows each change of how many are held, or may be.
func (s *recent[K, V]) setSlack() {
	slack := uint32(min(s.capacity/frontShare, math.MaxInt32))
	if s.capacity-s.order.Len > s.capacity/freeShare {
		slack = unordered
	}
	if s.slack.Load() != slack {
		s.slack.Store(slack)
	}
}

func (s *recent[K, V]) get(hash uint64, key K) (entry *tier.Entry[V], open bool) {
	t := s.index.Load()
	if t == nil {
		return nil, false
	}
	n := t.Find(hash, key)
	if n == nil {
		return nil, true
	}
	// In this order, or a move meanwhile would look like one of long ago.
	movedAt := n.Item.movedAt.Load()
	switch slack := s.slack.Load(); {
	case slack == unordered:
		n.Item.use()
	case s.moves.Load()-movedAt > slack:
		s.moveUp(hash, n)
	}
	return n.Item.entry.Load(), true
}

// moveUp moves a node that is behind to the front, unless it would have to wait for that.
func (s *recent[K, V]) moveUp(hash uint64, n *index.Node[K, record[V]]) {
	if !s.mu.TryLock() {
		n.Item.use()
		return
	}
	defer s.mu.Unlock()
	if t := s.index.Load(); t != nil {
		if t.Find(hash, n.Key) == n { // else it has gone meanwhile
			s.touch(n)
		}
	}
}

// touch does for a use of the node what it asks for. The lock is held.
func (s *recent[K, V]) touch(n *index.Node[K, record[V]]) {
	switch slack := s.slack.Load(); {
	case slack == unordered:
		n.Item.use()
	case s.moves.Load()-n.Item.movedAt.Load() > slack:
		s.toFront(n)
	}
}

func (s *recent[K, V]) toFront(n *index.Node[K, record[V]]) {
	s.order.ToFront(n)
	n.Item.used.Store(false)
	n.Item.movedAt.Store(s.moves.Add(1))
}

func (s *recent[K, V]) set(hash uint64, key K, entry *tier.Entry[V]) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.index.Load()
	if t == nil {
		return false
	}
	if n := t.Find(hash, key); n != nil {
		n.Item.entry.Store(entry)
		s.touch(n)
		return true
	}
	if s.slack.Load() != unordered {
		s.spare(sparedBySet)
	}
	if s.order.Len >= s.capacity {
		s.evict(t)
	}
	if s.order.Len >= t.Room() {
		t = t.Anew(min(2*t.Room(), s.capacity), s.hashOf)
		s.index.Store(t)
	}
	n := &index.Node[K, record[V]]{Key: key}
	n.Item.entry.Store(entry)
	n.Item.movedAt.Store(s.moves.Add(1))
	s.order.Push(n)
	t.Insert(hash, n)
	s.setSlack()
	return true
}

func (s *recent[K, V]) hashOf(n *index.Node[K, record[V]]) uint64 { return s.hash(n.Key) }

// spare moves entries that are marked from the end to the front, up to so many.
func (s *recent[K, V]) spare(most int) {
	for n := s.order.Oldest; n != nil && most > 0 && n.Item.used.Load(); n = s.order.Oldest {
		s.toFront(n)
		most--
	}
}

// evict lets go of the least recently used entry.
func (s *recent[K, V]) evict(t *index.Table[K, record[V]]) {
	s.spare(sparedByEviction)
	n := s.order.Oldest
	t.Remove(s.hashOf(n), n)
	s.order.Remove(n)
	s.evicted++
}

func (s *recent[K, V]) remove(hash uint64, key K) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.index.Load()
	if t == nil {
		return false
	}
	if n := t.Find(hash, key); n != nil {
		t.Remove(hash, n)
		s.order.Remove(n)
		s.setSlack()
	}
	return true
}

func (s *recent[K, V]) clear() (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index.Load() == nil {
		return false
	}
	s.restart()
	return true
}

func (s *recent[K, V]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = index.Queue[K, record[V]]{}
	s.index.Store(nil)
}

func (s *recent[K, V]) resize(capacity int) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.index.Load()
	if t == nil {
		return false
	}
	s.capacity = capacity
	s.setSlack() // so that readers do not go on marking
	for s.order.Len > capacity {
		s.evict(t)
	}
	if t.Room() > capacity {
		s.index.Store(t.Anew(capacity, s.hashOf))
	}
	s.setSlack()
	return true
}

func (s *recent[K, V]) usage() (held, capacity, evicted int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.order.Len), int64(s.capacity), s.evicted
}
