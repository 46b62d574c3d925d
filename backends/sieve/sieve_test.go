package sieve_test

import (
	"errors"
	"math"
	"testing"

	"github.com/terracecache/terrace/backends/internal/memtest"
	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/tier"
)

var admissions = []sieve.Admission{sieve.Filtered, sieve.Always}

// newStore makes stores with the given admission for the tests of memtest.
func newStore[K comparable, V any](a sieve.Admission) memtest.New[K, V] {
	return func(size memtest.Size) memtest.Store[K, V] {
		return sieve.NewWith[K, V](sieve.Options{Capacity: size.Capacity, Shards: size.Shards, Admission: a})
	}
}

// named is a way to make stores that is compared with others.
type named[K comparable, V any] struct {
	name     string
	newStore memtest.New[K, V]
}

// beside returns both kinds of this store, and the one that they must be better than.
func beside[K comparable, V any]() []named[K, V] {
	return []named[K, V]{
		{"filtered", newStore[K, V](sieve.Filtered)},
		{"always", newStore[K, V](sieve.Always)},
		{"lru", func(size memtest.Size) memtest.Store[K, V] {
			return lru.NewWith[K, V](lru.Options{Capacity: size.Capacity, Shards: size.Shards})
		}},
	}
}

func TestCapacity(t *testing.T) {
	for _, a := range admissions {
		t.Run(a.String(), func(t *testing.T) { memtest.Capacity(t, newStore[int, int](a)) })
	}
}

func TestFillsItsCapacity(t *testing.T) {
	for _, a := range admissions {
		t.Run(a.String(), func(t *testing.T) { memtest.FillsItsCapacity(t, newStore[int, int](a)) })
	}
}

func TestHugeCapacity(t *testing.T) {
	for _, a := range admissions {
		t.Run(a.String(), func(t *testing.T) { memtest.HugeCapacity(t, newStore[int, int](a)) })
	}
}

func TestBadOptions(t *testing.T) {
	memtest.BadOptions(t, newStore[string, int](sieve.Filtered),
		sieve.NewWith[string, int](sieve.Options{Capacity: 1, Admission: 3}),
		sieve.NewWith[string, int](sieve.Options{Capacity: 10, Shards: 3}),
		sieve.NewWith[string, int](sieve.Options{Capacity: math.MaxInt, Shards: math.MaxInt/2 + 1}),
	)
}

func TestGetDoesNotAllocate(t *testing.T) {
	for _, a := range admissions {
		t.Run(a.String(), func(t *testing.T) {
			memtest.GetDoesNotAllocate(t, newStore[string, int](a), "a key that is a string", "another")
			memtest.GetDoesNotAllocate(t, newStore[int, int](a), 12345, 54321)
			memtest.GetDoesNotAllocate(t, newStore[memtest.Point, int](a), memtest.Point{X: 1, Name: "name"}, memtest.Point{})
			memtest.GetDoesNotAllocate(t, newStore[[2]string, int](a), [2]string{"a", "b"}, [2]string{"b", "a"})
		})
	}
}

func TestNaN(t *testing.T) { memtest.NaN(t, newStore[[1]float64, int](sieve.Filtered)) }

func TestKeyThatCannotBeCompared(t *testing.T) {
	memtest.IncomparableKey(t, newStore[any, int](sieve.Filtered))
}

func TestTTL(t *testing.T) { memtest.TTL(t, newStore[string, int](sieve.Filtered)) }

func TestResize(t *testing.T) {
	for _, a := range admissions {
		t.Run(a.String(), func(t *testing.T) { memtest.Resize(t, newStore[int, memtest.Version](a), nil) })
	}
}

func TestResizeBelowTheShards(t *testing.T) {
	s := sieve.NewWith[int, int](sieve.Options{Capacity: 8, Shards: 4})
	if err := s.Resize(3); err == nil || errors.Is(err, tier.ErrNotResizable) {
		t.Errorf("Resize of 4 shards to 3: error %v, want one of its own", err)
	}
	if got := s.Usage().MaxEntries; got != 8 {
		t.Errorf("MaxEntries = %d, want still 8", got)
	}
}

func TestEviction(t *testing.T) {
	if got := tier.EvictionOf(sieve.New[int, int](10)); got != "sieve" {
		t.Errorf("eviction %q", got)
	}
}

func TestC72CloseDuringUse(t *testing.T) {
	for _, a := range admissions {
		t.Run(a.String(), func(t *testing.T) { memtest.CloseDuringUse(t, newStore[int, int](a)) })
	}
}
