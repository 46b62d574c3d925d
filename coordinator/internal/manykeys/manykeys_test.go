// Package manykeys_test is apart from the coordinator's other tests as it is compiled
// with and without the race detector, and those take minutes to compile.
package manykeys_test

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// A million keys later the flight table is empty and its memory is back.
func TestMillionKeysLater(t *testing.T) {
	c, err := coordinator.New(coordinator.Options[int, int]{
		Tiers:    []tier.Tier[int, int]{{Name: "l1", Store: lru.New[int, int](10)}},
		Lifetime: policy.Lifetime{TTL: time.Minute},
		Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		Load:     func(_ context.Context, k int) (int, error) { return k, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	fill := func(from, to int) {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for k := from + i; k < to; k += 4 {
					if got, err := c.Get(context.Background(), k); err != nil || got != k {
						t.Errorf("Get(%d): got %d, %v", k, got, err)
					}
				}
			})
		}
		all.Wait()
	}
	fill(0, 1000)
	before := heap()
	fill(1000, keysLater)
	if s := c.Stats(); s.Keys != 0 {
		t.Errorf("keys with something under way: got %d, want 0", s.Keys)
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("heap: %d KiB before, %d KiB after", before>>10, after>>10)
	}
}
