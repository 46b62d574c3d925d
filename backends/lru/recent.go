package lru

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/terracecache/terrace/backends/internal/index"
	"github.com/terracecache/terrace/tier"
)

// recent is a shard that evicts the least recently used entry, or one hardly used later.
// Readers find entries in a rack without a lock; the order of use is a list of its places,
// behind the lock.
//
// A hit leaves its entry where it is while no more than slack others have come to the
// front since the entry did: most hits of a skewed load are of entries near the front,
// which are far from being evicted. While a quarter of the shard is free hits move
// nothing, but mark their entry as used; so do those that find the lock taken. A marked
// entry at the end goes to the front instead of being evicted, for once.
type recent[K comparable, V any] struct {
	rack  atomic.Pointer[rack[K, V]] // nil when closed
	moves atomic.Uint32              // how often an entry came to the front
	slack atomic.Uint32

	_ [64]byte // keeps the lock off the line that every reader needs

	mu       sync.Mutex
	hash     func(K) uint64
	order    index.Queue
	capacity int
	evicted  int64

	_ [64]byte // keeps the next shard's rack off this one's lock
}

const (
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
	s.order = index.Queue{}
	s.rack.Store(newRack[K, V](min(firstRoom, s.capacity)))
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

func (s *recent[K, V]) get(hash uint64, key K) (pair *tier.Pair[K, V], open bool) {
	t := s.rack.Load()
	if t == nil {
		return nil, false
	}
	pair, p := t.Find(hash, key)
	if pair == nil {
		return nil, true
	}
	// In this order, or a move meanwhile would look like one of long ago.
	u := t.usesOf(p)
	movedAt := u.movedAt.Load()
	switch slack := s.slack.Load(); {
	case slack == unordered:
		u.use()
	case s.moves.Load()-movedAt > slack:
		s.moveUp(t, hash, key, p)
	}
	return pair, true
}

// moveUp moves a place that is behind to the front, unless it would have to wait for that.
func (s *recent[K, V]) moveUp(t *rack[K, V], hash uint64, key K, p index.Place) {
	if !s.mu.TryLock() {
		t.usesOf(p).use()
		return
	}
	defer s.mu.Unlock()
	if t != s.rack.Load() {
		return
	}
	if pair, now := t.Find(hash, key); pair != nil && now == p { // else it has gone meanwhile
		s.touch(t, p)
	}
}

// touch does for a use of the place what it asks for. The lock is held.
func (s *recent[K, V]) touch(t *rack[K, V], p index.Place) {
	switch u, slack := t.usesOf(p), s.slack.Load(); {
	case slack == unordered:
		u.use()
	case s.moves.Load()-u.movedAt.Load() > slack:
		s.toFront(t, p)
	}
}

func (s *recent[K, V]) toFront(t *rack[K, V], p index.Place) {
	s.order.ToFront(t.links, p)
	s.atFront(t, p)
}

// atFront notes that a place has come to the front.
func (s *recent[K, V]) atFront(t *rack[K, V], p index.Place) {
	u := t.usesOf(p)
	u.used.Store(false)
	u.movedAt.Store(s.moves.Add(1))
}

func (s *recent[K, V]) set(hash uint64, pair *tier.Pair[K, V]) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.rack.Load()
	if t == nil {
		return false
	}
	if old, p := t.Find(hash, pair.Key()); old != nil {
		t.Replace(p, old, pair)
		s.touch(t, p)
		return true
	}
	if s.slack.Load() != unordered {
		s.spare(t, sparedBySet)
	}
	if s.order.Len >= min(s.capacity, index.MostRoom) {
		s.evict(t)
	}
	if s.order.Len >= t.Room() {
		t = s.moveTo(t, min(2*t.Room(), s.capacity))
	}
	p := t.Insert(hash, pair)
	s.atFront(t, p)
	s.order.Push(t.links, p)
	s.setSlack()
	return true
}

// moveTo moves all pairs to another rack, for more or for fewer, which must have room.
// Readers go on in the old one.
func (s *recent[K, V]) moveTo(t *rack[K, V], room int) *rack[K, V] {
	anew := newRack[K, V](room)
	moved := make([]index.Place, t.Places())
	t.Each(func(from index.Place) {
		pair := t.At(from)
		to := anew.Insert(s.hash(pair.Key()), pair)
		moved[from.Number()] = to
		u := anew.usesOf(to)
		u.movedAt.Store(t.usesOf(from).movedAt.Load())
		u.used.Store(t.usesOf(from).used.Load())
	})
	s.order = s.order.Moved(t.links, anew.links, func(p index.Place) index.Place { return moved[p.Number()] })
	s.rack.Store(anew)
	return anew
}

// spare moves entries that are marked from the end to the front, up to so many.
func (s *recent[K, V]) spare(t *rack[K, V], most int) {
	for p := s.order.Oldest; p != 0 && most > 0 && t.usesOf(p).used.Load(); p = s.order.Oldest {
		s.toFront(t, p)
		most--
	}
}

// evict lets go of the least recently used entry.
func (s *recent[K, V]) evict(t *rack[K, V]) {
	s.spare(t, sparedByEviction)
	p := s.order.Oldest
	s.drop(t, s.hash(t.At(p).Key()), p)
	s.evicted++
}

func (s *recent[K, V]) drop(t *rack[K, V], hash uint64, p index.Place) {
	s.order.Remove(t.links, p)
	t.Remove(hash, p)
}

func (s *recent[K, V]) remove(hash uint64, key K) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.rack.Load()
	if t == nil {
		return false
	}
	if pair, p := t.Find(hash, key); pair != nil {
		s.drop(t, hash, p)
		s.setSlack()
	}
	return true
}

func (s *recent[K, V]) clear() (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rack.Load() == nil {
		return false
	}
	s.restart()
	return true
}

func (s *recent[K, V]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = index.Queue{}
	s.rack.Store(nil)
}

func (s *recent[K, V]) resize(capacity int) (open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.rack.Load()
	if t == nil {
		return false
	}
	s.capacity = capacity
	s.setSlack() // so that readers do not go on marking
	for s.order.Len > capacity {
		s.evict(t)
	}
	if t.Room() > capacity {
		s.moveTo(t, capacity)
	}
	s.setSlack()
	return true
}

func (s *recent[K, V]) usage() (held, capacity, evicted int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.order.Len), int64(s.capacity), s.evicted
}
