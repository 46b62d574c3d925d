package lru

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/terracecache/terrace/backends/internal/index"
	"github.com/terracecache/terrace/tier"
)

// recent is a shard that evicts the least recently used entry. Readers find entries in
// an index without a lock; golang-lru keeps the order of use, behind the lock.
//
// Unless the order is to be exact, a hit leaves its entry where it is while no more than
// slack others have come to the front since the entry did: most hits of a skewed load are
// of entries near the front, which are far from being evicted. While a quarter of the
// shard is free, hits move nothing: before anything is evicted, so many entries must come,
// and the hits meanwhile move up what is in use.
type recent[K comparable, V any] struct {
	index atomic.Pointer[index.Table[K, record[V]]] // nil when closed
	moves atomic.Uint32                             // how often an entry came to the front
	slack atomic.Uint32

	_ [64]byte // keeps the lock off the line that every reader needs

	mu       sync.Mutex
	order    *simplelru.LRU[*index.Node[K, record[V]], struct{}]
	capacity int
	exact    bool
	evicted  int64

	_ [64]byte // keeps the next shard's index off this one's lock
}

// record is what a node holds besides its key.
type record[V any] struct {
	movedAt atomic.Uint32 // which of the shard's moves was its last
	entry   tier.Entry[V] // inside its node, so that a hit is one look into memory less
}

const (
	// firstRoom is how many nodes an index is made for at first.
	firstRoom = 42
	// perSpare is for how many nodes the index has a place that is free.
	perSpare = 6
	// frontShare is the part of a full shard, 1 in so many, that hits leave where it is.
	// That costs no hits that can be told from what shards cost; a quarter instead of an
	// eighth costs a tenth of a point, and half of it some tenths (docs/decisions.md).
	frontShare = 8
	// freeShare is the part of a shard, 1 in so many, that must be free for its order to
	// be nobody's concern yet.
	freeShare = 4
)

func newRecent[K comparable, V any](capacity int, exact bool) *recent[K, V] {
	s := &recent[K, V]{capacity: capacity, exact: exact}
	s.restart()
	return s
}

// restart is for who holds the lock, or nobody knows of the shard yet.
func (s *recent[K, V]) restart() {
	// The constructor's only error is about sizes below 1.
	s.order, _ = simplelru.NewLRU[*index.Node[K, record[V]], struct{}](s.capacity, nil)
	s.index.Store(index.NewTable[K, record[V]](min(firstRoom, s.capacity), perSpare))
	s.setSlack()
}

// setSlack follows each change of how many are held, or may be.
func (s *recent[K, V]) setSlack() {
	if s.exact {
		return
	}
	slack := uint32(min(s.capacity/frontShare, math.MaxInt32))
	if s.capacity-s.order.Len() > s.capacity/freeShare {
		slack = math.MaxUint32
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
	n, _ := t.Find(hash, key)
	if n == nil {
		return nil, true
	}
	if s.isBehind(n) {
		s.moveUp(n)
	}
	return &n.Item.entry, true
}

// isBehind reports whether the node has left the front.
func (s *recent[K, V]) isBehind(n *index.Node[K, record[V]]) bool {
	return s.moves.Load()-n.Item.movedAt.Load() > s.slack.Load()
}

// moveUp moves a node to the front, if it is still held. Where the order is not exact
// anyway, nobody waits for that: the next hit will do it.
func (s *recent[K, V]) moveUp(n *index.Node[K, record[V]]) {
	if s.exact {
		s.mu.Lock()
	} else if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if s.order == nil || !s.isBehind(n) {
		return
	}
	if _, held := s.order.Get(n); held {
		n.Item.movedAt.Store(s.moves.Add(1))
	}
}

func (s *recent[K, V]) set(hash uint64, key K, entry *tier.Entry[V]) (open bool) {
	n := &index.Node[K, record[V]]{Key: key, Hash: hash}
	n.Item.entry = *entry
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.index.Load()
	if t == nil {
		return false
	}
	n.Item.movedAt.Store(s.moves.Add(1))
	if old, at := t.Find(hash, key); old != nil {
		t.Replace(at, n)
		s.order.Remove(old)
		s.order.Add(n, struct{}{})
		return true
	}
	if s.order.Len() >= s.capacity {
		s.evict(t)
	}
	if s.order.Len() >= t.Room() {
		t = t.Grown(min(2*t.Room(), s.capacity))
		s.index.Store(t)
	}
	t.Insert(n)
	s.order.Add(n, struct{}{})
	s.setSlack()
	return true
}

// evict lets go of the least recently used entry.
func (s *recent[K, V]) evict(t *index.Table[K, record[V]]) {
	n, _, _ := s.order.RemoveOldest()
	_, at := t.Find(n.Hash, n.Key)
	t.Remove(n, at)
	s.evicted++
}

func (s *recent[K, V]) remove(hash uint64, key K) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.index.Load()
	if t == nil {
		return false
	}
	if n, at := t.Find(hash, key); n != nil {
		t.Remove(n, at)
		s.order.Remove(n)
		s.setSlack()
	}
	return true
}

func (s *recent[K, V]) clear() (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order == nil {
		return false
	}
	s.restart()
	return true
}

func (s *recent[K, V]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = nil
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
	for s.order.Len() > capacity {
		s.evict(t)
	}
	s.order.Resize(capacity)
	s.setSlack()
	if t.Room() > capacity {
		s.index.Store(t.Grown(capacity))
	}
	return true
}

func (s *recent[K, V]) usage() (held, capacity, evicted int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order != nil {
		held = int64(s.order.Len())
	}
	return held, int64(s.capacity), s.evicted
}
