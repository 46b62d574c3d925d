package tier

import (
	"context"
	"reflect"
	"time"
)

// Pair is an entry laid out together with its key, as one object. It is immutable and
// shared by pointer like its entry, between tiers too: one object is then all that an entry
// takes in each of them.
type Pair[K comparable, V any] struct {
	key   K
	entry Entry[V]
}

// NewPair makes a pair, of an entry as [NewEntry] makes it.
func NewPair[K comparable, V any](key K, value V, m Meta) *Pair[K, V] {
	p := &Pair[K, V]{key: key}
	p.entry.set(value, &m)
	return p
}

// PairOf returns a pair with a copy of the entry.
func PairOf[K comparable, V any](key K, e *Entry[V]) *Pair[K, V] {
	return &Pair[K, V]{key: key, entry: *e}
}

// Key returns the key.
func (p *Pair[K, V]) Key() K { return p.key }

// Entry returns the entry, which is part of the pair and keeps it in memory. That of no
// pair is no entry.
func (p *Pair[K, V]) Entry() *Entry[V] {
	if p == nil {
		return nil
	}
	return &p.entry
}

// Capped is [Entry.Capped] for pairs.
func (p *Pair[K, V]) Capped(until Instant) *Pair[K, V] {
	if p.entry.usableUntil <= until {
		return p
	}
	c := *p
	c.entry.usableUntil = until
	return &c
}

// PairStore is a store in memory that keeps pairs as they are. Its other methods do the
// same with entries alone, which cost it a copy.
type PairStore[K comparable, V any] interface {
	Store[K, V]

	// GetPair is Get for the pair, whose key is the one asked for.
	GetPair(ctx context.Context, key K) (*Pair[K, V], error)

	// SetPair is Set of the pair's entry under its key. The pair must not be nil.
	SetPair(ctx context.Context, pair *Pair[K, V], ttl time.Duration) error

	// Itself returns the store. What embeds one has its methods too, but may have a Get or
	// a Set of its own, which must not be passed by: see [AsPairStore].
	Itself() Store[K, V]
}

// AsPairStore returns the store's methods for pairs if it has them and is not just a wrapper
// that has embedded one that has. A store that cannot be compared is not told from that.
func AsPairStore[K comparable, V any](s Store[K, V]) (PairStore[K, V], bool) {
	p, ok := s.(PairStore[K, V])
	if !ok || !reflect.ValueOf(s).Comparable() || p.Itself() != s {
		return nil, false
	}
	return p, true
}
