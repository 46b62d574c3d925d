package memtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/terracecache/terrace/tier"
)

// BenchmarkGet is what every hit in a first tier pays, called as a cache calls it:
// one goroutine over 1,000 keys, one key from all cores, a zipf draw over 100,000
// keys from all cores, and the same while one of the cores writes.
func BenchmarkGet(b *testing.B, newStore New[string, int]) {
	b.Run("hot", func(b *testing.B) {
		s, keys := filled(b, newStore, 1000, 10_000)
		for i := 0; b.Loop(); i++ {
			_, _ = s.Get(ctx, keys[i%len(keys)])
		}
	})
	b.Run("one key", func(b *testing.B) {
		s, keys := filled(b, newStore, 1000, 10_000)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = s.Get(ctx, keys[0])
			}
		})
	})
	b.Run("zipf", func(b *testing.B) {
		s, keys := filled(b, newStore, 100_000, 200_000)
		draws := zipf(len(keys))
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for i := rand.IntN(len(draws)); pb.Next(); i++ {
				_, _ = s.Get(ctx, keys[draws[i%len(draws)]])
			}
		})
	})
	b.Run("beside a writer", func(b *testing.B) {
		s, keys := filled(b, newStore, 1000, 1000)
		entry := endless(1)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					_ = s.Set(ctx, keys[i%len(keys)], entry, tier.Forever)
				}
			}
		}()
		for i := 0; b.Loop(); i++ {
			_, _ = s.Get(ctx, keys[i*7%len(keys)])
		}
		close(stop)
		<-stopped
	})
}

// BenchmarkSet is what a load pays for being kept: over an entry that is held, in a
// store that fills up, and in a full one, where something is evicted for it.
func BenchmarkSet(b *testing.B, newStore New[string, int]) {
	entry := endless(1)
	b.Run("update", func(b *testing.B) {
		s, keys := filled(b, newStore, 1000, 10_000)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_ = s.Set(ctx, keys[i%len(keys)], entry, tier.Forever)
		}
	})
	b.Run("fill", func(b *testing.B) {
		keys := keys(1 << 20)
		b.ReportAllocs()
		var s Store[string, int]
		for i := 0; b.Loop(); i++ {
			if i %= len(keys); i == 0 {
				s = newStore(Size{Capacity: len(keys)})
			}
			_ = s.Set(ctx, keys[i], entry, tier.Forever)
		}
	})
	b.Run("evict", func(b *testing.B) {
		s, _ := filled(b, newStore, 0, 100_000)
		keys := keys(1 << 20)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_ = s.Set(ctx, keys[i%len(keys)], entry, tier.Forever)
		}
	})
	b.Run("zipf", func(b *testing.B) {
		s, keys := filled(b, newStore, 100_000, 2000)
		draws := zipf(len(keys))
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for i := rand.IntN(len(draws)); pb.Next(); i++ {
				key := keys[draws[i%len(draws)]]
				if e, _ := s.Get(ctx, key); e == nil {
					_ = s.Set(ctx, key, entry, tier.Forever)
				}
			}
		})
	})
}

func filled(b *testing.B, newStore New[string, int], n, capacity int) (Store[string, int], []string) {
	s, keys := newStore(Size{Capacity: capacity}), keys(n)
	for i, key := range keys {
		MustSet(b, s, key, i)
	}
	return s, keys
}

func keys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%012d", i)
	}
	return keys
}

// zipf draws before the clock starts: a draw costs more than a hit.
func zipf(n int) []int {
	z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.01, 1, uint64(n-1))
	draws := make([]int, 1<<16)
	for i := range draws {
		draws[i] = int(z.Uint64())
	}
	return draws
}
