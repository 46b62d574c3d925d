// Package memtest has the tests and benchmarks that stores in this process's memory,
// bounded by the number of entries, have in common. They go beyond what
// [storetest.TestStore] asks of every store.
package memtest

import (
	"context"
	"testing"

	"github.com/terracecache/terrace/tier"
)

// Store is what such a store can do.
type Store[K comparable, V any] interface {
	tier.Store[K, V]
	tier.Local
	tier.Clearer
	tier.Measurer
	tier.Validator
}

// Size is how much a store holds at most, and in how many parts that evict on their
// own; zero Shards leave that to the store.
type Size struct{ Capacity, Shards int }

// New makes an empty store.
type New[K comparable, V any] func(Size) Store[K, V]

var ctx = context.Background()

func endless[V any](value V) *tier.Entry[V] {
	return tier.NewEntry(value, tier.Meta{FreshUntil: tier.Never, UsableUntil: tier.Never})
}

// MustSet keeps a value for ever.
func MustSet[K comparable, V any](t testing.TB, s tier.Store[K, V], key K, value V) {
	t.Helper()
	if err := s.Set(ctx, key, endless(value), tier.Forever); err != nil {
		t.Fatalf("Set(%v): %v", key, err)
	}
}

// Has reports whether a Get finds something.
func Has[K comparable, V any](t testing.TB, s tier.Store[K, V], key K) bool {
	t.Helper()
	e, err := s.Get(ctx, key)
	if err != nil {
		t.Fatalf("Get(%v): %v", key, err)
	}
	return e != nil
}
