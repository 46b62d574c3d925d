package sieve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/tier"
)

func filled(n int, o sieve.Options) (*sieve.Store[string, int], []string) {
	s := sieve.NewWith[string, int](o)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%012d", i)
		_ = s.Set(context.Background(), keys[i], tier.NewEntry(i, tier.Meta{UsableUntil: tier.Never}), tier.Forever)
	}
	return s, keys
}

// BenchmarkGet is what every hit in a first tier pays: one goroutine over 1,000
// keys, one key from all cores, and a zipf draw over 100,000 keys from all cores.
func BenchmarkGet(b *testing.B) {
	ctx := context.Background()
	for _, e := range []sieve.Admission{sieve.Filtered} {
		b.Run(e.String()+"/hot", func(b *testing.B) {
			s, keys := filled(1000, sieve.Options{Capacity: 10_000, Admission: e})
			for i := 0; b.Loop(); i++ {
				_, _ = s.Get(ctx, keys[i%len(keys)])
			}
		})
		b.Run(e.String()+"/one key", func(b *testing.B) {
			s, keys := filled(1000, sieve.Options{Capacity: 10_000, Admission: e})
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = s.Get(ctx, keys[0])
				}
			})
		})
		b.Run(e.String()+"/zipf", func(b *testing.B) {
			s, keys := filled(100_000, sieve.Options{Capacity: 200_000, Admission: e})
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
