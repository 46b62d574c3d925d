package sieve_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/tier"
)

var (
	ctx       = context.Background()
	admissions = []sieve.Admission{sieve.Filtered, sieve.Always}
)

var (
	_ tier.Store[string, int] = (*sieve.Store[string, int])(nil)
	_ tier.Local              = (*sieve.Store[string, int])(nil)
	_ tier.Clearer            = (*sieve.Store[string, int])(nil)
	_ tier.Measurer           = (*sieve.Store[string, int])(nil)
	_ tier.Validator          = (*sieve.Store[string, int])(nil)
)

func endless[V any](value V) *tier.Entry[V] {
	return tier.NewEntry(value, tier.Meta{FreshUntil: tier.Never, UsableUntil: tier.Never})
}

func mustSet[K comparable, V any](t *testing.T, s *sieve.Store[K, V], key K, value V) {
	t.Helper()
	if err := s.Set(ctx, key, endless(value), tier.Forever); err != nil {
		t.Fatalf("Set(%v): %v", key, err)
	}
}

func has[K comparable, V any](t *testing.T, s *sieve.Store[K, V], key K) bool {
	t.Helper()
	e, err := s.Get(ctx, key)
	if err != nil {
		t.Fatalf("Get(%v): %v", key, err)
	}
	return e != nil
}


// The bound holds for each eviction, capacity and split, whatever the access; ARC
// by itself would exceed it. All that is gone is either removed or counted evicted.
func TestCapacity(t *testing.T) {
	for _, a := range admissions {
		for _, o := range []sieve.Options{
			{Capacity: 1}, {Capacity: 2}, {Capacity: 3}, {Capacity: 7, Shards: 2}, {Capacity: 5, Shards: 4}, {Capacity: 100}, {Capacity: 1000},
		} {
			o.Admission = a
			t.Run(fmt.Sprint(a, o.Capacity, o.Shards), func(t *testing.T) {
				s := sieve.NewWith[int, int](o)
				rnd := rand.New(rand.NewPCG(1, uint64(o.Capacity)))
				var added, removed int64
				for range 20_000 {
					key := rnd.IntN(2*o.Capacity + 2)
					was := s.Usage().Entries
					switch rnd.IntN(10) {
					case 0:
						if err := s.Delete(ctx, key); err != nil {
							t.Fatal(err)
						}
						removed += was - s.Usage().Entries
					case 1, 2, 3, 4:
						has(t, s, key)
					default:
						if !has(t, s, key) {
							added++
						}
						mustSet(t, s, key, key)
					}
					u := s.Usage()
					if u.Entries > int64(o.Capacity) {
						t.Fatalf("holds %d entries, capacity %d", u.Entries, o.Capacity)
					}
					if u.Evictions != added-removed-u.Entries {
						t.Fatalf("%+v after %d added and %d removed", u, added, removed)
					}
				}
				evicted := s.Usage().Evictions
				if err := s.Clear(ctx); err != nil {
					t.Fatal(err)
				}
				if u := s.Usage(); u.Entries != 0 || u.Evictions != evicted {
					t.Errorf("after Clear: %+v, want no entries and still %d evictions", u, evicted)
				}
			})
		}
	}
}

func TestFillsItsCapacity(t *testing.T) {
	for _, o := range []sieve.Options{{Capacity: 1}, {Capacity: 10}, {Capacity: 255}, {Capacity: 3, Shards: 2}} {
		s := sieve.NewWith[int, int](o)
		for i := range 50 * o.Capacity {
			mustSet(t, s, i, i)
		}
		if got := s.Usage().Entries; got != int64(o.Capacity) {
			t.Errorf("%+v: holds %d entries after many writes", o, got)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []sieve.Options{
		{}, {Capacity: -1}, {Capacity: math.MinInt}, {Capacity: 1, Shards: 2}, {Capacity: 1, Shards: -1}, {Capacity: 1, Admission: 3},
	} {
		s := sieve.NewWith[string, int](o)
		want := s.Validate()
		if want == nil {
			t.Errorf("%+v: Validate gives no error", o)
		}
		if _, err := s.Get(ctx, "key"); !errors.Is(err, want) {
			t.Errorf("%+v: Get gives error %v, want %v", o, err, want)
		}
		if err := s.Set(ctx, "key", endless(1), time.Hour); !errors.Is(err, want) {
			t.Errorf("%+v: Set gives error %v, want %v", o, err, want)
		}
		if err := s.Delete(ctx, "key"); !errors.Is(err, want) {
			t.Errorf("%+v: Delete gives error %v, want %v", o, err, want)
		}
		if err := s.Clear(ctx); !errors.Is(err, want) {
			t.Errorf("%+v: Clear gives error %v, want %v", o, err, want)
		}
		s.Usage()
		if err := s.Close(); err != nil {
			t.Errorf("%+v: Close: %v", o, err)
		}
	}
	if err := sieve.New[string, int](1).Validate(); err != nil {
		t.Errorf("New(1): %v", err)
	}
}

type point struct {
	X, Y int
	Name string
}

func TestGetDoesNotAllocate(t *testing.T) {
	for _, a := range admissions {
		getAllocates(t, a, "a key that is a string")
		getAllocates(t, a, 12345)
		getAllocates(t, a, point{1, 2, "name"})
		getAllocates(t, a, [2]string{"a", "b"})
	}
}

func getAllocates[K comparable](t *testing.T, a sieve.Admission, key K) {
	t.Helper()
	s := sieve.NewWith[K, int](sieve.Options{Capacity: 10_000, Shards: 4, Admission: a})
	mustSet(t, s, key, 1)
	has(t, s, key) // moves it to the frequent ones
	if n := testing.AllocsPerRun(200, func() {
		if entry, err := s.Get(ctx, key); entry == nil || err != nil {
			t.Fatal(entry, err)
		}
	}); n != 0 {
		t.Errorf("%v: Get of a %T allocates %v times", a, key, n)
	}
}

// A key that does not equal itself could be added without end and never found.
func TestNaN(t *testing.T) {
	s := sieve.New[[1]float64, int](10)
	for range 100 {
		if err := s.Set(ctx, [1]float64{math.NaN()}, endless(1), time.Hour); !errors.Is(err, tier.ErrBadKey) {
			t.Fatalf("Set of NaN: got error %v, want tier.ErrBadKey", err)
		}
	}
	if has(t, s, [1]float64{math.NaN()}) {
		t.Error("NaN is held")
	}
	if err := s.Delete(ctx, [1]float64{math.NaN()}); err != nil {
		t.Errorf("Delete of NaN: %v", err)
	}
	if got := s.Usage().Entries; got != 0 {
		t.Errorf("holds %d entries", got)
	}
	mustSet(t, s, [1]float64{0}, 1)
	if !has(t, s, [1]float64{math.Copysign(0, -1)}) {
		t.Error("0 and -0 are equal, but not one key")
	}
}

// An interface satisfies comparable and can hold what panics when compared.
func TestKeyThatCannotBeCompared(t *testing.T) {
	s := sieve.NewWith[any, int](sieve.Options{Capacity: 10, Shards: 2})
	bad := any([]int{1})
	if _, err := s.Get(ctx, bad); !errors.Is(err, tier.ErrBadKey) {
		t.Errorf("Get: got error %v, want tier.ErrBadKey", err)
	}
	if err := s.Set(ctx, bad, endless(1), time.Hour); !errors.Is(err, tier.ErrBadKey) {
		t.Errorf("Set: got error %v, want tier.ErrBadKey", err)
	}
	if err := s.Delete(ctx, bad); !errors.Is(err, tier.ErrBadKey) {
		t.Errorf("Delete: got error %v, want tier.ErrBadKey", err)
	}
	for _, good := range []any{nil, 1, "1", point{X: 1}} {
		mustSet(t, s, good, 1)
		if !has(t, s, good) {
			t.Errorf("%#v is not held", good)
		}
	}
}

func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sieve.New[string, int](10)
		now := tier.Now()
		entry := tier.NewEntry(1, tier.Meta{FreshUntil: now.Add(time.Minute), UsableUntil: now.Add(time.Hour)})
		for _, c := range []struct {
			ttl  time.Duration
			want tier.Instant
		}{
			{time.Second, now.Add(time.Second)},
			{1, now.Add(1)},
			{time.Hour, now.Add(time.Hour)},
			{2 * time.Hour, now.Add(time.Hour)},
			{math.MaxInt64 - 1, now.Add(time.Hour)},
			{tier.Forever, now.Add(time.Hour)},
		} {
			if err := s.Set(ctx, "key", entry, c.ttl); err != nil {
				t.Fatal(err)
			}
			got, err := s.Get(ctx, "key")
			if err != nil || got == nil || got.UsableUntil() != c.want || got.FreshUntil() != entry.FreshUntil() {
				t.Errorf("ttl %v: got %+v, %v; want UsableUntil %v", c.ttl, got, err, c.want)
			}
		}
		for _, ttl := range []time.Duration{0, -1, math.MinInt64} {
			mustSet(t, s, "key", 1)
			if err := s.Set(ctx, "key", entry, ttl); err != nil {
				t.Fatal(err)
			}
			if has(t, s, "key") {
				t.Errorf("ttl %v: the entry, or an older one, is held", ttl)
			}
		}
	})
}

func TestC72CloseDuringUse(t *testing.T) {
	for _, a := range admissions {
		s := sieve.NewWith[int, int](sieve.Options{Capacity: 100, Shards: 4, Admission: a})
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				for n := 0; ; n++ {
					_, getErr := s.Get(ctx, n%7)
					setErr := s.Set(ctx, n%7, endless(i), time.Hour)
					deleteErr := s.Delete(ctx, n%5)
					if errors.Is(getErr, tier.ErrClosed) && errors.Is(setErr, tier.ErrClosed) && errors.Is(deleteErr, tier.ErrClosed) {
						return
					}
				}
			})
		}
		wg.Go(func() { _ = s.Clear(ctx); _ = s.Close() })
		wg.Wait()
		if err := s.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		if err := s.Clear(ctx); !errors.Is(err, tier.ErrClosed) {
			t.Errorf("Clear after Close: got error %v, want tier.ErrClosed", err)
		}
		if u := s.Usage(); u.Entries != 0 {
			t.Errorf("holds %d entries after Close", u.Entries)
		}
	}
}
