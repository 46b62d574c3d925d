package lru_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/internal/memtest"
	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/tier"
)

var evictions = []lru.Eviction{lru.LRU, lru.TwoQueue, lru.ARC}

// newStore makes stores with the given eviction for the tests of memtest.
func newStore[K comparable, V any](e lru.Eviction) memtest.New[K, V] {
	return func(size memtest.Size) memtest.Store[K, V] {
		return lru.NewWith[K, V](lru.Options{Capacity: size.Capacity, Shards: size.Shards, Eviction: e})
	}
}

func TestOneShardIsExact(t *testing.T) {
	s := lru.NewWith[int, int](lru.Options{Capacity: 3, Shards: 1})
	for i := range 3 {
		memtest.MustSet(t, s, i, i)
	}
	memtest.Has(t, s, 0)        // order of use now 1, 2, 0
	memtest.MustSet(t, s, 2, 2) // 1, 0, 2
	memtest.MustSet(t, s, 3, 3)
	memtest.MustSet(t, s, 4, 4)
	for i, want := range []bool{false, false, true, true, true} {
		if got := memtest.Has(t, s, i); got != want {
			t.Errorf("key %d held: %v, want %v", i, got, want)
		}
	}
	if got := s.Usage().Evictions; got != 2 {
		t.Errorf("Evictions = %d, want 2", got)
	}
}

// An ARC by itself would exceed its capacity.
func TestCapacity(t *testing.T) {
	for _, e := range evictions {
		t.Run(e.String(), func(t *testing.T) {
			memtest.Capacity(t, newStore[int, int](e), memtest.Size{Capacity: 7, Shards: 3}, memtest.Size{Capacity: 5, Shards: 5})
		})
	}
}

func TestFillsItsCapacity(t *testing.T) {
	memtest.FillsItsCapacity(t, newStore[int, int](lru.LRU), memtest.Size{Capacity: 3, Shards: 3})
}

func TestHugeCapacity(t *testing.T) {
	for _, e := range evictions {
		t.Run(e.String(), func(t *testing.T) { memtest.HugeCapacity(t, newStore[int, int](e)) })
	}
}

func TestBadOptions(t *testing.T) {
	memtest.BadOptions(t, newStore[string, int](lru.LRU),
		lru.NewWith[string, int](lru.Options{Capacity: 1, Eviction: 3}),
		lru.NewWith[string, int](lru.Options{Capacity: math.MaxInt, Shards: math.MaxInt}),
	)
}

func TestGetDoesNotAllocate(t *testing.T) {
	for _, e := range evictions {
		t.Run(e.String(), func(t *testing.T) {
			memtest.GetDoesNotAllocate(t, newStore[string, int](e), "a key that is a string", "another")
			memtest.GetDoesNotAllocate(t, newStore[int, int](e), 12345, 54321)
			memtest.GetDoesNotAllocate(t, newStore[memtest.Point, int](e), memtest.Point{X: 1, Name: "name"}, memtest.Point{})
			memtest.GetDoesNotAllocate(t, newStore[[2]string, int](e), [2]string{"a", "b"}, [2]string{"b", "a"})
		})
	}
}

func TestNaN(t *testing.T) { memtest.NaN(t, newStore[[1]float64, int](lru.LRU)) }

func TestKeyThatCannotBeCompared(t *testing.T) {
	memtest.IncomparableKey(t, newStore[any, int](lru.LRU))
}

func TestTTL(t *testing.T) { memtest.TTL(t, newStore[string, int](lru.LRU)) }

func TestEntryIsNotCopiedWithoutNeed(t *testing.T) {
	s := lru.New[string, int](10)
	pair := tier.NewPair("key", 1, tier.Meta{UsableUntil: tier.Now().Add(time.Hour)})
	for _, ttl := range []time.Duration{2 * time.Hour, tier.Forever} {
		if err := s.SetPair(context.Background(), pair, ttl); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(context.Background(), "key"); got != pair.Entry() || err != nil {
			t.Errorf("ttl %v: Get = %p, %v, want the entry %p itself", ttl, got, err, pair.Entry())
		}
	}
}

func TestResize(t *testing.T) { memtest.Resize(t, newStore[int, memtest.Version](lru.LRU), nil) }

func TestResizeEvictsTheLeastRecentlyUsed(t *testing.T) {
	s := lru.NewWith[int, int](lru.Options{Capacity: 4, Shards: 1})
	for i := range 4 {
		memtest.MustSet(t, s, i, i)
	}
	memtest.Has(t, s, 0) // order of use now 1, 2, 3, 0
	if err := s.Resize(2); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, false, true} {
		if got := memtest.Has(t, s, i); got != want {
			t.Errorf("key %d held: %v, want %v", i, got, want)
		}
	}
	if got := s.Usage().Evictions; got != 2 {
		t.Errorf("Evictions = %d, want 2", got)
	}
}

func TestResizeBelowTheShards(t *testing.T) {
	s := lru.NewWith[int, int](lru.Options{Capacity: 8, Shards: 4})
	if err := s.Resize(3); err == nil || errors.Is(err, tier.ErrNotResizable) {
		t.Errorf("Resize of 4 shards to 3: error %v, want one of its own", err)
	}
	if got := s.Usage().MaxEntries; got != 8 {
		t.Errorf("MaxEntries = %d, want still 8", got)
	}
}

func TestEviction(t *testing.T) {
	for _, e := range evictions {
		s := lru.NewWith[int, int](lru.Options{Capacity: 10, Eviction: e})
		if got := tier.EvictionOf(s); got != e.String() {
			t.Errorf("%v: eviction %q", e, got)
		}
		_, can := tier.AsResizer(s)
		if want := e == lru.LRU; can != want {
			t.Errorf("%v: resizable: %v, want %v", e, can, want)
		}
		if err := s.Resize(20); errors.Is(err, tier.ErrNotResizable) == can {
			t.Errorf("%v: Resize: %v", e, err)
		}
		if _, can := tier.AsClearer(s); !can {
			t.Errorf("%v: cannot be cleared", e)
		}
	}
}

func TestC72CloseDuringUse(t *testing.T) {
	for _, e := range evictions {
		t.Run(e.String(), func(t *testing.T) { memtest.CloseDuringUse(t, newStore[int, int](e)) })
	}
}
