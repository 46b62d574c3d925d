package coordinator_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	library "github.com/dgraph-io/ristretto/v2"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// structKey has a field that others do not see.
type structKey struct {
	n      int32
	Tenant string
}

var strategies = []policy.Strategy{policy.Fixed{}, policy.StaleWhileRevalidate{}, policy.XFetch{}, policy.XFetch{Beta: 1e6}}

// A fresh hit in the first tier allocates nothing, whatever the key, the policy and
// the eviction, and starts no goroutine. Neither value fits in an interface.
func TestHitDoesNotAllocate(t *testing.T) {
	hitAllocates(t, "string", "a key that is long enough", versioned{"a value", 1})
	hitAllocates(t, "int", 1<<30, 1<<30)
	hitAllocates(t, "struct", structKey{7, "name"}, 1<<30)
	hitAllocates(t, "array", [2]string{"a", "b"}, 1<<30)
}

func hitAllocates[K comparable, V any](t *testing.T, name string, key K, value V) {
	for _, strategy := range strategies {
		for eviction, l1 := range map[string]tier.Store[K, V]{
			"sieve": sieve.New[K, V](1000),
			"lru":   lru.New[K, V](1000),
			"2q":    lru.NewWith[K, V](lru.Options{Capacity: 1000, Eviction: lru.TwoQueue}),
			"arc":   lru.NewWith[K, V](lru.Options{Capacity: 1000, Eviction: lru.ARC}),
		} {
			t.Run(fmt.Sprintf("%s %s %v", name, policy.NameOf(strategy), eviction), func(t *testing.T) {
				l2 := ristretto.New[K, V](ristretto.Options[K, V]{MaxCost: 1 << 20})
				c := newCache(t, coordinator.Options[K, V]{
					Tiers: []tier.Tier[K, V]{
						{Name: "l1", Store: l1, TTL: time.Hour},
						{Name: "l2", Store: l2},
					},
					Lifetime: policy.Lifetime{TTL: 24 * time.Hour, Jitter: 0.1, StaleWhileRevalidate: time.Minute},
					Refresh:  strategy,
					Load:     func(context.Context, K) (V, error) { return value, nil },
				})
				if _, err := c.Get(ctx, key); err != nil {
					t.Fatal(err)
				}
				goroutines, loads := runtime.NumGoroutine(), c.Stats().Loads
				if got := testing.AllocsPerRun(1000, func() {
					if _, err := c.Get(ctx, key); err != nil {
						t.Fatal(err)
					}
				}); got != 0 {
					t.Errorf("Get: got %v allocations, want 0", got)
				}
				if got := testing.AllocsPerRun(1000, func() {
					if _, err := c.Lookup(ctx, key); err != nil {
						t.Fatal(err)
					}
				}); got != 0 {
					t.Errorf("Lookup: got %v allocations, want 0", got)
				}
				load := func(context.Context, K) (V, error) { return value, nil }
				if got := testing.AllocsPerRun(1000, func() {
					if _, err := c.GetOrLoad(ctx, key, load); err != nil {
						t.Fatal(err)
					}
				}); got != 0 {
					t.Errorf("GetOrLoad: got %v allocations, want 0", got)
				}
				if got := c.Stats().Loads; got != loads {
					t.Errorf("loads: %d before, %d after", loads, got)
				}
				// Those that others start, such as a timer's, end.
				awaitReal(t, 10*time.Second, "no goroutine more", func() bool { return runtime.NumGoroutine() <= goroutines })
			})
		}
	}
}

// BenchmarkHit guards the hit path: the full coordinator with two tiers in memory.
func BenchmarkHit(b *testing.B) {
	for _, l1 := range []struct {
		name string
		make func() tier.Store[string, *int]
	}{
		{"sieve", func() tier.Store[string, *int] { return sieve.New[string, *int](100_000) }},
		{"lru", func() tier.Store[string, *int] { return lru.New[string, *int](100_000) }},
	} {
		for _, strategy := range strategies[:3] {
			c := newCache(b, coordinator.Options[string, *int]{
				Tiers: []tier.Tier[string, *int]{
					{Name: "l1", Store: l1.make()},
					{Name: "l2", Store: ristretto.New(ristretto.Options[string, *int]{MaxCost: 1 << 20})},
				},
				Lifetime: policy.Lifetime{TTL: time.Hour, StaleWhileRevalidate: time.Minute},
				Refresh:  strategy,
				Load:     func(context.Context, string) (*int, error) { return new(int), nil },
			})
			keys := make([]string, 1000)
			for i := range keys {
				keys[i] = fmt.Sprintf("key-%012d", i)
				_, _ = c.Get(ctx, keys[i])
			}
			b.Run(l1.name+"/"+policy.NameOf(strategy), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					_, _ = c.Get(ctx, keys[i])
					if i++; i == len(keys) {
						i = 0
					}
				}
			})
			b.Run(l1.name+"/"+policy.NameOf(strategy)+"/one key", func(b *testing.B) {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						_, _ = c.Get(ctx, keys[0])
					}
				})
			})
		}
	}
}

// BenchmarkMiss is the price of a load beside the loader's own.
func BenchmarkMiss(b *testing.B) {
	c := newCache(b, coordinator.Options[int, int]{
		Tiers: []tier.Tier[int, int]{{Name: "l1", Store: lru.New[int, int](1000)}},
		Load:  func(_ context.Context, k int) (int, error) { return k, nil },
	})
	b.ReportAllocs()
	for i := range b.N {
		_, _ = c.Get(ctx, i)
	}
}

// BenchmarkPromote is the price of a hit in the second tier that fills the first,
// beside that of the second tier's library alone.
func BenchmarkPromote(b *testing.B) {
	const keys, upper = 1000, 100
	raw, err := library.NewCache(&library.Config[string, *int]{NumCounters: 10 * keys, MaxCost: 2 * keys, BufferItems: 64, IgnoreInternalCost: true})
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	l2 := ristretto.New(ristretto.Options[string, *int]{MaxCost: 2 * keys, Cost: func(string, *tier.Entry[*int]) int64 { return 1 }})
	c := newCache(b, coordinator.Options[string, *int]{
		Tiers: []tier.Tier[string, *int]{
			{Name: "l1", Store: sieve.New[string, *int](upper)},
			{Name: "l2", Store: l2},
		},
		Lifetime: policy.Lifetime{TTL: time.Hour},
		Refresh:  policy.XFetch{},
		Load:     func(context.Context, string) (*int, error) { return new(int), nil },
	})
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("key-%012d", i)
		raw.SetWithTTL(names[i], new(int), 1, time.Hour)
		raw.Wait()
		_, _ = c.Get(ctx, names[i])
	}
	b.Run("terrace", func(b *testing.B) {
		b.ReportAllocs()
		before := c.Stats()
		for i := 0; b.Loop(); i = (i + 1) % keys {
			_, _ = c.Get(ctx, names[i])
		}
		after := c.Stats()
		b.ReportMetric(float64(after.Tiers[1].Hits-before.Tiers[1].Hits)/float64(b.N), "l2-hits/op")
	})
	b.Run("ristretto alone", func(b *testing.B) {
		for i := 0; b.Loop(); i = (i + 1) % keys {
			_, _ = raw.Get(names[i])
		}
	})
}

// BenchmarkSet is the price of a Set of a key that two tiers in memory hold.
func BenchmarkSet(b *testing.B) {
	for _, tiers := range []int{1, 2} {
		b.Run(fmt.Sprintf("%d tiers", tiers), func(b *testing.B) {
			const keys = 10_000
			c := newCache(b, coordinator.Options[string, *int]{
				Tiers: []tier.Tier[string, *int]{
					{Name: "l1", Store: sieve.New[string, *int](2 * keys)},
					{Name: "l2", Store: ristretto.New(ristretto.Options[string, *int]{MaxCost: 2 * keys, Cost: func(string, *tier.Entry[*int]) int64 { return 1 }})},
				}[:tiers],
				Lifetime: policy.Lifetime{TTL: time.Hour},
			})
			names := make([]string, keys)
			for i := range names {
				names[i] = fmt.Sprintf("key-%012d", i)
				_ = c.Set(ctx, names[i], new(int))
			}
			b.ReportAllocs()
			v := new(int)
			for i := 0; b.Loop(); i = (i + 1) % keys {
				_ = c.Set(ctx, names[i], v)
			}
		})
	}
}
