package readtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Reader is one way to read what a store keeps.
type Reader struct {
	Name string
	Get  func(ctx context.Context, key string) ([]byte, error)
}

// Benchmark fills the store and has 1, 64 and 512 goroutines read it, by each reader.
func Benchmark(b *testing.B, s tier.Bytes, readers ...Reader) {
	for _, size := range []int{100, 1024} {
		var keys []string
		for i := range 1000 {
			keys = append(keys, fmt.Sprintf("%d:%016d", size, i))
			if err := s.Set(b.Context(), keys[i], make([]byte, size), time.Hour); err != nil {
				b.Fatal(err)
			}
		}
		for _, goroutines := range []int{1, 64, 512} {
			for _, r := range readers {
				b.Run(fmt.Sprintf("%d B/%d goroutines/%s", size, goroutines, r.Name), func(b *testing.B) {
					b.ReportAllocs()
					readAll(b, goroutines, keys, size, r)
				})
			}
		}
	}
}

// readAll reads b.N values, each within a time limit as a tier has one.
func readAll(b *testing.B, goroutines int, keys []string, size int, r Reader) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				ctx, cancel := context.WithTimeout(b.Context(), time.Second)
				value, err := r.Get(ctx, keys[i*7%int64(len(keys))])
				cancel()
				if len(value) != size {
					b.Error(errors.Join(err, fmt.Errorf("%d bytes, want %d", len(value), size)))
					return
				}
			}
		})
	}
	all.Wait()
}
