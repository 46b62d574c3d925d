package ristretto_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	library "github.com/dgraph-io/ristretto/v2"

	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/tier"
)

// filled returns a store with room for ten times n entries, and the keys of n that it
// holds.
func filled(b *testing.B, n int, life time.Duration) (*ristretto.Store[string, int], []string) {
	s := open(b, each[string, int](int64(10*n)))
	keys := names(n)
	for i, key := range keys {
		_ = s.Set(ctx, key, endless(i), life)
	}
	settled(b, s.Pending)
	return s, keys
}

// filledLibrary is filled for Ristretto as it comes.
func filledLibrary(b *testing.B, n int, life time.Duration) (*library.Cache[string, *tier.Entry[int]], []string) {
	c, err := library.NewCache(&library.Config[string, *tier.Entry[int]]{
		NumCounters: int64(100 * n), MaxCost: int64(10 * n), BufferItems: 64, IgnoreInternalCost: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	keys := names(n)
	for i, key := range keys {
		c.SetWithTTL(key, endless(i), 1, libraryTTL(life))
		if i%10_000 == 0 {
			c.Wait() // or it drops some
		}
	}
	c.Wait()
	return c, keys
}

func libraryTTL(life time.Duration) time.Duration {
	if life == tier.Forever {
		return 0
	}
	return life
}

func names(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%012d", i)
	}
	return keys
}

var lives = []struct {
	name string
	life time.Duration
}{{"endless", tier.Forever}, {"life", time.Hour}}

// BenchmarkGet is what a hit in this tier costs, beside what it costs in Ristretto as
// it comes, which looks at the clock for an entry with a life.
func BenchmarkGet(b *testing.B) {
	for _, l := range lives {
		get := func(b *testing.B, n int) (func(string), []string) {
			s, keys := filled(b, n, l.life)
			return func(key string) { _, _ = s.Get(ctx, key) }, keys
		}
		getLibrary := func(b *testing.B, n int) (func(string), []string) {
			c, keys := filledLibrary(b, n, l.life)
			return func(key string) { c.Get(key) }, keys
		}
		b.Run(l.name+"/store", func(b *testing.B) { benchmarkGet(b, get) })
		b.Run(l.name+"/library", func(b *testing.B) { benchmarkGet(b, getLibrary) })
	}
}

func benchmarkGet(b *testing.B, open func(b *testing.B, n int) (get func(string), keys []string)) {
	b.Run("hot", func(b *testing.B) {
		get, keys := open(b, 1000)
		for i := 0; b.Loop(); i++ {
			get(keys[i%len(keys)])
		}
	})
	b.Run("turn", func(b *testing.B) {
		get, keys := open(b, 50_000)
		for i := 0; b.Loop(); i++ {
			get(keys[i%len(keys)])
		}
	})
	b.Run("one key", func(b *testing.B) {
		get, keys := open(b, 1000)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				get(keys[0])
			}
		})
	})
	b.Run("zipf", func(b *testing.B) {
		get, keys := open(b, 100_000)
		z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.01, 1, 99_999)
		draws := make([]int, 1<<16)
		for i := range draws {
			draws[i] = int(z.Uint64())
		}
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for i := rand.IntN(len(draws)); pb.Next(); i++ {
				get(keys[draws[i%len(draws)]])
			}
		})
	})
}

// BenchmarkSet includes what settling costs: a writer waits when too much is left to
// be settled. Ristretto as it comes drops what it cannot keep up with.
func BenchmarkSet(b *testing.B) {
	const n = 100_000
	for _, l := range lives {
		e := endless(1)
		if l.life != tier.Forever {
			e = mortal(1, l.life)
		}
		store := func(b *testing.B, n int) func(string) {
			s, _ := filled(b, n, l.life)
			return func(key string) { _ = s.Set(ctx, key, e, tier.Forever) }
		}
		lib := func(b *testing.B, n int) func(string) {
			c, _ := filledLibrary(b, n, l.life)
			return func(key string) { c.SetWithTTL(key, e, 1, libraryTTL(l.life)) }
		}
		for _, of := range []struct {
			name string
			open func(b *testing.B, n int) (set func(string))
		}{{"store", store}, {"library", lib}} {
			b.Run(l.name+"/"+of.name+"/replace", func(b *testing.B) {
				set, keys := of.open(b, n), names(n)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					set(keys[i*7%n])
				}
			})
			b.Run(l.name+"/"+of.name+"/new", func(b *testing.B) {
				set, keys := of.open(b, n/10), names(20*n) // of which n fit in
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					set(keys[i%len(keys)])
				}
			})
		}
	}
}
