package coordinator_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

// These bounds guard what each operation costs without timing it. docs/performance.md
// states them; a change that exceeds one has to lower the cost or change both.
const (
	missObjects    = 8 // of a load, its entry's included
	missBytes      = 1280
	promoteObjects = 0
	setObjects     = 1 // the entry with its key, for all tiers
	deleteObjects  = 0
	sharedObjects  = 2.75 // of a hit in a shared tier: its bytes and its entry, and what the race detector has pools forget
	joinObjects    = 1    // of a caller who waits for another's load
	joinBytes      = 256
	joinStack      = 512 // by which the stack grows: a new one is 2 KiB, and is doubled or not
)

// cost returns what one call of f allocates, on the average of many.
func cost(calls int, f func(i int)) (objects, bytes float64) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // its own work is counted too
	f(-1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range calls {
		f(i)
	}
	runtime.ReadMemStats(&after)
	n := float64(calls)
	return float64(after.Mallocs-before.Mallocs) / n, float64(after.TotalAlloc-before.TotalAlloc) / n
}

func sieveTiers(upper, lower int) []tier.Tier[int, int] {
	tiers := []tier.Tier[int, int]{{Name: "l1", Store: sieve.New[int, int](upper)}}
	if lower > 0 {
		tiers = append(tiers, tier.Tier[int, int]{Name: "l2", Store: sieve.New[int, int](lower)})
	}
	return tiers
}

func identity(_ context.Context, key int) (int, error) { return key, nil }

func wantCost(t *testing.T, what string, got, most float64) {
	t.Helper()
	// A tenth for what others allocate meanwhile, such as a map that grows now and then.
	if t.Logf("%s: %.2f", what, got); got > most+0.1*max(1, most/10) {
		t.Errorf("%s: got %.2f, want at most %v", what, got, most)
	}
}

func TestCostOfAMiss(t *testing.T) {
	c := newCache(t, coordinator.Options[int, int]{Tiers: sieveTiers(1000, 0), Load: identity, Refresh: policy.XFetch{}})
	objects, bytes := cost(5000, func(i int) {
		if _, err := c.Get(ctx, i); err != nil {
			t.Fatal(err)
		}
	})
	wantCost(t, "objects", objects, missObjects)
	wantCost(t, "bytes", bytes, missBytes)
}

// A flight takes one goroutine, which ends with it.
func TestGoroutinesOfAMiss(t *testing.T) {
	during := make(chan int, 1)
	c := newCache(t, coordinator.Options[int, int]{Tiers: sieveTiers(1000, 1000), Load: func(context.Context, int) (int, error) {
		during <- runtime.NumGoroutine()
		return 0, nil
	}})
	before := runtime.NumGoroutine()
	if _, err := c.Get(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if got := <-during - before; got > 1 {
		t.Errorf("a load runs %d goroutines, want 1", got)
	}
}

func TestCostOfAPromotion(t *testing.T) {
	const keys, upper = 2000, 100
	c := newCache(t, coordinator.Options[int, int]{Tiers: sieveTiers(upper, 2*keys), Load: identity, Refresh: policy.XFetch{}, Lifetime: policy.Lifetime{TTL: time.Hour}})
	for i := range keys {
		_, _ = c.Get(ctx, i)
	}
	before := c.Stats()
	objects, _ := cost(5*keys, func(i int) { _, _ = c.Get(ctx, max(i, 0)%keys) })
	after := c.Stats()
	if got := after.Tiers[1].Hits - before.Tiers[1].Hits; got < 4*keys {
		t.Fatalf("%d hits in the lower tier; the test measures something else", got)
	}
	wantCost(t, "objects", objects, promoteObjects)
}

// A read of a shared tier whose store keeps no contexts needs none that is new.
func TestCostOfASharedHit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newCache(t, coordinator.Options[string, []byte]{
		Tiers: []tier.Tier[string, []byte]{{Name: "l3", Store: tier.Encode[string](storetest.NewMapBytes(), codec.Raw())}},
	})
	if err := c.Set(ctx, "key", make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	objects, bytes := cost(5000, func(int) {
		if _, err := c.Get(ctx, "key"); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%.0f bytes", bytes)
	wantCost(t, "objects", objects, sharedObjects)
}

func TestCostOfWrites(t *testing.T) {
	c := newCache(t, coordinator.Options[int, int]{Tiers: sieveTiers(1000, 0)})
	objects, _ := cost(5000, func(i int) {
		if err := c.Set(ctx, i%100, i); err != nil {
			t.Fatal(err)
		}
	})
	wantCost(t, "objects of a Set", objects, setObjects)
	objects, _ = cost(5000, func(i int) {
		if err := c.Delete(ctx, i%100); err != nil {
			t.Fatal(err)
		}
	})
	wantCost(t, "objects of a Delete", objects, deleteObjects)
}

// Ten thousand callers who wait for one load cost little more than their goroutines.
func TestCostOfJoining(t *testing.T) {
	const callers = 10_000
	for _, deadline := range []bool{false, true} {
		virtual(t, fmt.Sprintf("deadline %v", deadline), func(t *testing.T) {
			load := make(chan struct{})
			c := newCache(t, coordinator.Options[int, int]{Tiers: sieveTiers(1000, 0), Load: func(context.Context, int) (int, error) {
				<-load
				return 1, nil
			}})
			ctx := ctx
			if deadline {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
			}
			var done sync.WaitGroup
			start := make(chan struct{})
			for range callers {
				done.Go(func() {
					<-start
					if v, err := c.Get(ctx, 1); v != 1 || err != nil {
						t.Errorf("got %v, %v", v, err)
					}
				})
			}
			synctest.Wait()
			var before, waiting, after runtime.MemStats
			runtime.ReadMemStats(&before)
			close(start)
			synctest.Wait() // all wait for the load
			runtime.ReadMemStats(&waiting)
			close(load)
			done.Wait()
			runtime.ReadMemStats(&after)
			if got := c.Stats().Joins; got != callers-1 {
				t.Errorf("%d joined, want %d", got, callers-1)
			}
			wantCost(t, "objects", float64(after.Mallocs-before.Mallocs)/callers, joinObjects)
			wantCost(t, "bytes", float64(after.TotalAlloc-before.TotalAlloc)/callers, joinBytes)
			wantCost(t, "stack", max(0, float64(waiting.StackInuse)-float64(before.StackInuse))/callers, joinStack)
		})
	}
}
