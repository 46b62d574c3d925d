package ristretto_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/ristretto"
)

func filled(b *testing.B, n int, life time.Duration) (*ristretto.Store[string, int], []string) {
	s := open(b, each[string, int](int64(10*n)))
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%012d", i)
		_ = s.Set(ctx, keys[i], endless(i), life)
	}
	settled(b, s.Pending)
	return s, keys
}

// BenchmarkGet is what a hit in this tier costs; entries with a life have Ristretto
// look at the clock.
func BenchmarkGet(b *testing.B) {
	const endlessly, hour = 1<<63 - 1, time.Hour
	for name, life := range map[string]time.Duration{"endless": endlessly, "life": hour} {
		b.Run(name+"/hot", func(b *testing.B) {
			s, keys := filled(b, 1000, life)
			for i := 0; b.Loop(); i++ {
				_, _ = s.Get(ctx, keys[i%len(keys)])
			}
		})
		b.Run(name+"/one key", func(b *testing.B) {
			s, keys := filled(b, 1000, life)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = s.Get(ctx, keys[0])
				}
			})
		})
		b.Run(name+"/zipf", func(b *testing.B) {
			s, keys := filled(b, 100_000, life)
			z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.01, 1, 99_999)
			draws := make([]int, 1<<16)
			for i := range draws {
				draws[i] = int(z.Uint64())
			}
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for i := rand.IntN(len(draws)); pb.Next(); i++ {
					_, _ = s.Get(ctx, keys[draws[i%len(draws)]])
				}
			})
		})
	}
}

// BenchmarkSet includes what settling costs.
func BenchmarkSet(b *testing.B) {
	s, keys := filled(b, 100_000, 1<<63-1)
	e := endless(1)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := rand.IntN(len(keys)); pb.Next(); i++ {
			_ = s.Set(ctx, keys[i%len(keys)], e, 1<<63-1)
		}
	})
}
