package otter_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/terracecache/terrace/backends/internal/memtest"
	"github.com/terracecache/terrace/backends/otter"
	"github.com/terracecache/terrace/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// byEntries and byCost make stores for the tests of memtest. There are no shards.

func byEntries[K comparable, V any](size memtest.Size) memtest.Store[K, V] {
	return otter.New(otter.Options[K, V]{Capacity: size.Capacity})
}

func byCost[K comparable, V any](size memtest.Size) memtest.Store[K, V] {
	return otter.New(otter.Options[K, V]{MaxCost: int64(size.Capacity), Cost: one[K, V]})
}

func one[K comparable, V any](K, *tier.Entry[V]) int64 { return 1 }

func byBytes[V any](maxBytes int64) (memtest.Store[string, V], func()) {
	return otter.New(otter.Options[string, V]{MaxCost: maxBytes}), func() {}
}

func TestCapacity(t *testing.T)         { memtest.Capacity(t, byEntries[int, int]) }
func TestFillsItsCapacity(t *testing.T) { memtest.FillsItsCapacity(t, byEntries[int, int]) }
func TestHugeCapacity(t *testing.T)     { memtest.HugeCapacity(t, byEntries[int, int]) }

func TestResize(t *testing.T) {
	t.Run("entries", func(t *testing.T) { memtest.Resize(t, byEntries[int, memtest.Version], nil) })
	t.Run("cost", func(t *testing.T) { memtest.Resize(t, byCost[int, memtest.Version], nil) })
}

func TestBadOptions(t *testing.T) {
	for _, o := range []otter.Options[string, int]{
		{}, {Capacity: -1}, {Capacity: math.MinInt}, {MaxCost: -1}, {MaxCost: math.MinInt64},
		{Capacity: 1, MaxCost: 1}, {Capacity: -1, MaxCost: 1}, {Capacity: 1, MaxCost: -1}, {Capacity: 1, Cost: one[string, int]},
	} {
		memtest.Refused(t, otter.New(o))
	}
	for _, o := range []otter.Options[string, int]{{Capacity: 1}, {MaxCost: 1}, {MaxCost: 1, Cost: one[string, int]}} {
		if err := otter.New(o).Validate(); err != nil {
			t.Errorf("%+v: Validate: %v", o, err)
		}
	}
}

func TestGetDoesNotAllocate(t *testing.T) {
	memtest.GetDoesNotAllocate(t, byEntries[string, int], "a key that is a string", "another")
	memtest.GetDoesNotAllocate(t, byEntries[int, int], 12345, 54321)
	memtest.GetDoesNotAllocate(t, byCost[memtest.Point, int], memtest.Point{X: 1, Name: "name"}, memtest.Point{})
	memtest.GetDoesNotAllocate(t, byCost[[2]string, int], [2]string{"a", "b"}, [2]string{"b", "a"})
}

// A full store also counts hits, and moves what had some.
func TestGetFromAFullStoreDoesNotAllocate(t *testing.T) {
	s := otter.New(otter.Options[int, int]{Capacity: 1000})
	for i := range 5000 {
		memtest.MustSet(t, s, i, i)
	}
	i := 0
	if n := testing.AllocsPerRun(10_000, func() { _, _ = s.Get(ctx, i%5000); i++ }); n != 0 {
		t.Errorf("Get allocates %v times", n)
	}
}

func TestNaN(t *testing.T) { memtest.NaN(t, byEntries[[1]float64, int]) }

func TestKeyThatCannotBeCompared(t *testing.T) { memtest.IncomparableKey(t, byEntries[any, int]) }

func TestTTL(t *testing.T) { memtest.TTL(t, byEntries[string, int]) }

func TestEntryIsNotCopiedWithoutNeed(t *testing.T) {
	s := otter.New(otter.Options[string, int]{Capacity: 10})
	entry := tier.NewEntry(1, tier.Meta{UsableUntil: tier.Now().Add(time.Hour)})
	for _, ttl := range []time.Duration{2 * time.Hour, tier.Forever} {
		if err := s.Set(ctx, "key", entry, ttl); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(ctx, "key"); got != entry || err != nil {
			t.Errorf("ttl %v: Get = %p, %v, want the entry %p itself", ttl, got, err, entry)
		}
	}
}

func TestC72CloseDuringUse(t *testing.T) {
	memtest.CloseDuringUse(t, byEntries[int, int])
	memtest.CloseDuringUse(t, byCost[int, int])
}

func TestEviction(t *testing.T) {
	if got := tier.EvictionOf(otter.New(otter.Options[int, int]{Capacity: 1})); got != "w-tinylfu" {
		t.Errorf("eviction %q", got)
	}
}

func text(n int) *tier.Entry[string] {
	return tier.NewEntry(strings.Repeat("x", n), tier.Meta{UsableUntil: tier.Never})
}

func length(_ string, e *tier.Entry[string]) int64 { return int64(len(e.Value())) }

func TestTooCostly(t *testing.T) {
	s := otter.New(otter.Options[string, string]{MaxCost: 100, Cost: length})
	for i, c := range []struct {
		length int
		kept   bool
	}{{5, true}, {101, false}, {100, true}, {1000, false}, {0, true}} {
		if err := s.Set(ctx, "key", text(c.length), tier.Forever); err != nil {
			t.Fatal(err)
		}
		e, err := s.Get(ctx, "key")
		if err != nil || (e != nil) != c.kept || e != nil && len(e.Value()) != c.length {
			t.Errorf("step %d: got %v, %v", i, e, err)
		}
	}
	if u := s.Usage(); u.Rejections != 2 || u.Cost != 1 || u.MaxCost != 100 || u.Entries != 1 || u.MaxEntries != -1 {
		t.Errorf("%+v, want 2 rejections and an entry that costs 1", u)
	}
}

func TestMoreThanCanBeWeighed(t *testing.T) {
	s := otter.New(otter.Options[string, string]{
		MaxCost: 1 << 40, Cost: func(string, *tier.Entry[string]) int64 { return 1 << 33 },
	})
	if err := s.Set(ctx, "key", text(1), tier.Forever); err != nil {
		t.Fatal(err)
	}
	if e, _ := s.Get(ctx, "key"); e != nil {
		t.Error("held, so what was it taken to cost?")
	}
}

// Cost stays in bounds, also when entries grow under their keys, and follows a Resize.
func TestCostIsBounded(t *testing.T) {
	s := otter.New(otter.Options[string, string]{MaxCost: 10_000, Cost: length})
	rnd := rand.New(rand.NewPCG(1, 1))
	for step := range 20_000 {
		if err := s.Set(ctx, fmt.Sprint(rnd.IntN(200)), text(rnd.IntN(500)), tier.Forever); err != nil {
			t.Fatal(err)
		}
		if step == 10_000 {
			if err := s.Resize(3000); err != nil {
				t.Fatal(err)
			}
		}
		if u := s.Usage(); u.Cost > u.MaxCost || step > 1000 && u.Cost < u.MaxCost/2 {
			t.Fatalf("step %d: %+v", step, u)
		}
	}
}

// What nobody asks for goes for what is asked for, dead or not.
func TestTheDeadMakeRoom(t *testing.T) {
	s := otter.New(otter.Options[int, int]{Capacity: 1000})
	for i := range 1000 {
		if err := s.Set(ctx, i, tier.NewEntry(i, tier.Meta{}), time.Nanosecond); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		for i := 1000; i < 1900; i++ {
			if !memtest.Has(t, s, i) {
				memtest.MustSet(t, s, i, i)
			}
		}
	}
	held := 0
	for i := 1000; i < 1900; i++ {
		if memtest.Has(t, s, i) {
			held++
		}
	}
	if held < 850 {
		t.Errorf("%d of 900 entries in use are held beside the dead", held)
	}
}

func TestClear(t *testing.T) {
	s := otter.New(otter.Options[int, int]{Capacity: 1000})
	for i := range 3000 {
		memtest.MustSet(t, s, i, i)
	}
	if err := s.Resize(500); err != nil {
		t.Fatal(err)
	}
	if err := s.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Entries != 0 || u.Evictions != 2500 || u.MaxEntries != 500 {
		t.Errorf("after Clear: %+v", u)
	}
	for i := range 3000 {
		memtest.MustSet(t, s, i, i)
	}
	if u := s.Usage(); u.Entries != 500 || u.Evictions != 5000 {
		t.Errorf("filled again: %+v", u)
	}
}

func TestHeapIsWithinTheBudget(t *testing.T) {
	memtest.BytesInBudget(t, byBytes[[]byte])
	memtest.StringsInBudget(t, byBytes[string])
	memtest.RecordsInBudget(t, byBytes[*memtest.Record])
	memtest.MapsInBudget(t, byBytes[map[string]int])
}
