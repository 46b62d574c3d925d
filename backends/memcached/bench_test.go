package memcached_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// BenchmarkGet is a hit, beside that of the client on the same connections.
func BenchmarkGet(b *testing.B) {
	c := memcache.New(servers.Memcached(b).Addr())
	c.MaxIdleConns = 512
	defer c.Close()
	gathered := memcached.NewWith(c, memcached.Options{MaxConnections: 512})
	defer gathered.Close()
	alone := memcached.NewWith(c, memcached.Options{MaxConnections: 512, Gather: 1})
	defer alone.Close()
	readers := []struct {
		name string
		get  func(ctx context.Context, key string) ([]byte, error)
	}{
		{"gathered", gathered.Get},
		{"alone", alone.Get},
		{"gomemcache", func(_ context.Context, key string) ([]byte, error) {
			item, err := c.Get(key)
			if err != nil {
				return nil, err
			}
			return item.Value, nil
		}},
	}
	for _, size := range []int{100, 1024} {
		var keys []string
		for i := range 1000 {
			keys = append(keys, fmt.Sprintf("%d:%016d", size, i))
			if err := gathered.Set(b.Context(), keys[i], make([]byte, size), time.Hour); err != nil {
				b.Fatal(err)
			}
		}
		for _, goroutines := range []int{1, 64, 512} {
			for _, r := range readers {
				b.Run(fmt.Sprintf("%d B/%d goroutines/%s", size, goroutines, r.name), func(b *testing.B) {
					b.ReportAllocs()
					readAll(b, goroutines, keys, size, r.get)
				})
			}
		}
	}
}

// readAll reads b.N values, each within a time limit as a tier has one.
func readAll(b *testing.B, goroutines int, keys []string, size int, get func(ctx context.Context, key string) ([]byte, error)) {
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
				value, err := get(ctx, keys[i*7%int64(len(keys))])
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
