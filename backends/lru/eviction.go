package lru

import (
	"github.com/hashicorp/golang-lru/arc/v2"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/terracecache/terrace/tier"
)

// Eviction says which entry goes when there is no room.
type Eviction uint8

const (
	// LRU evicts the entry that was used least recently.
	LRU Eviction = iota

	// TwoQueue keeps entries that were used once apart from those used again, so that
	// a scan does not flush what is in use. Source: Johnson, Shasha, "2Q: A Low
	// Overhead High Performance Buffer Management Replacement Algorithm", VLDB 1994.
	TwoQueue

	// ARC shifts the room between recent and frequent entries by what would have
	// been hits. Source: Megiddo, Modha, "ARC: A Self-Tuning, Low Overhead
	// Replacement Cache", FAST 2003. IBM has held patents on it.
	ARC
)

// String returns the name: "lru", "2q" or "arc".
func (e Eviction) String() string {
	switch e {
	case LRU:
		return "lru"
	case TwoQueue:
		return "2q"
	case ARC:
		return "arc"
	default:
		return "unknown"
	}
}

// evictor is what the three have in common.
type evictor[K comparable, V any] interface {
	Get(K) (*tier.Entry[V], bool)
	// Recent is Get where that would change nothing that matters, else nil. Any number
	// may call it at once, as long as none of the others is called.
	Recent(K) *tier.Entry[V]
	Contains(K) bool
	Add(K, *tier.Entry[V])
	Remove(K)
	Len() int
}

// newEvictor returns an evictor that never holds more than capacity entries, which
// is 1 or more. Of a single entry all kinds make the same.
func newEvictor[K comparable, V any](e Eviction, capacity int, exact bool) evictor[K, V] {
	// The constructors' only errors are about sizes below 1.
	switch {
	case e == TwoQueue && capacity > 1:
		c, _ := lru.New2Q[K, *tier.Entry[V]](capacity) // keeps capacity/2 ghosts, so 1 is too few
		return &hasty[K, V]{c}
	case e == ARC && capacity > 1:
		// An ARC can hold one more than its size: when the recent entries fill it, and
		// a ghost returns as a frequent one.
		c, _ := arc.NewARC[K, *tier.Entry[V]](capacity - 1)
		return &hasty[K, V]{c}
	default:
		c, _ := simplelru.NewLRU[K, place[V]](capacity, nil)
		l := &lazy[K, V]{lru: c}
		if !exact {
			l.front = uint64(capacity / frontShare)
		}
		return l
	}
}

// hasty is an evictor that every hit changes.
type hasty[K comparable, V any] struct {
	everyHit[K, V]
}

type everyHit[K comparable, V any] interface {
	Get(K) (*tier.Entry[V], bool)
	Contains(K) bool
	Add(K, *tier.Entry[V])
	Remove(K)
	Len() int
}

func (*hasty[K, V]) Recent(K) *tier.Entry[V] { return nil }

// lazy is an LRU that does not move an entry to the front that is in the front part
// anyway. Otherwise cores that read the same few entries would take the list's memory
// from each other at every hit. Source: Berg et al., "The CacheLib Caching Engine",
// OSDI 2020, which moves an entry once a minute; here it is not time that counts but
// how many have been put before it.
type lazy[K comparable, V any] struct {
	lru   *simplelru.LRU[K, place[V]]
	front uint64 // how many from the front are not moved
	moves uint64 // to the front, of new ones too
}

// frontShare is the front's share of the capacity, 1 in so many. An entry that has a
// hit outlives three quarters as many others as in an exact LRU, at least.
const frontShare = 4

// place is an entry, and moves when it was moved to the front.
type place[V any] struct {
	entry *tier.Entry[V]
	moved uint64
}

func (l *lazy[K, V]) Recent(key K) *tier.Entry[V] {
	if p, ok := l.lru.Peek(key); ok && l.moves-p.moved < l.front {
		return p.entry
	}
	return nil
}

func (l *lazy[K, V]) Get(key K) (*tier.Entry[V], bool) {
	p, ok := l.lru.Peek(key)
	if ok {
		l.Add(key, p.entry)
	}
	return p.entry, ok
}

func (l *lazy[K, V]) Add(key K, entry *tier.Entry[V]) {
	l.moves++
	l.lru.Add(key, place[V]{entry, l.moves})
}

func (l *lazy[K, V]) Contains(key K) bool { return l.lru.Contains(key) }

func (l *lazy[K, V]) Remove(key K) { l.lru.Remove(key) }

func (l *lazy[K, V]) Len() int { return l.lru.Len() }
