package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// The figures of public articles on cache stampedes, shown again: an origin takes
// 200 ms and serves 20 calls at once, one more is refused.

const originLatency = 200 * time.Millisecond

var errRefused = errors.New("origin: over capacity")

// limited is the articles' origin.
func (o *origin) limited(capacity int64, value string) coordinator.Loader[string, string] {
	return func(ctx context.Context, _ string) (string, error) {
		defer o.enter()()
		if o.running.Load() > capacity {
			return "", errRefused
		}
		return value, sleep(ctx, originLatency)
	}
}

func TestStampedeOneLoad(t *testing.T) {
	for _, callers := range []int{200, 10_000} {
		for _, tiers := range []int{1, 3} {
			virtual(t, fmt.Sprintf("%d callers, %d tiers", callers, tiers), func(t *testing.T) {
				var o origin
				c := newCache(t, coordinator.Options[string, string]{Tiers: chain(tiers), Load: o.limited(20, "v")})
				start := time.Now()
				var failed atomic.Int64
				many(callers, func(int) {
					if v, err := c.Get(ctx, "k"); err != nil || v != "v" {
						failed.Add(1)
					}
				})
				if got, limit := time.Since(start), originLatency*11/10; got > limit {
					t.Errorf("wall: got %v, want at most %v", got, limit)
				}
				if got := failed.Load(); got != 0 {
					t.Errorf("%d callers did not get the value", got)
				}
				wantCalls(t, &o, 1)
				if got := o.peak.Load(); got != 1 {
					t.Errorf("peak: got %d, want 1", got)
				}
				s := c.Stats()
				if s.Loads != 1 || s.Joins != uint64(callers-1) || s.Requests() != uint64(callers) {
					t.Errorf("stats: got %d loads, %d joins, %d requests", s.Loads, s.Joins, s.Requests())
				}
			})
		}
	}
}

// chain returns n tiers of which the lower ones are shared byte stores.
func chain(n int) []tier.Tier[string, string] {
	tiers := []tier.Tier[string, string]{memory[string]("l1")}
	for i := 2; i <= n; i++ {
		tiers = append(tiers, shared[string](fmt.Sprintf("l%d", i), storetest.NewMapBytes()))
	}
	return tiers[:n]
}

// Figure 1: without a cache in between, 200 requests are 200 calls, of which the
// origin refuses 180. It shows that the origin of these tests can fail.
func TestStampedeFigure1Naive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		load := o.limited(20, "v")
		var failed atomic.Int64
		many(200, func(int) {
			if _, err := load(ctx, "k"); err != nil {
				failed.Add(1)
			}
		})
		wantCalls(t, &o, 200)
		if got := failed.Load(); got != 180 {
			t.Errorf("failed: got %d, want 180", got)
		}
	})
}

// Figure 3a: in the broken version a suspension between the check and the
// registration lets all 200 load. Here the store suspends at each look.
func TestStampedeFigure3aSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		slow := hook(storetest.NewMap[string, string](), func(ctx context.Context, _, _ string) error {
			return sleep(ctx, 10*time.Millisecond)
		})
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{{Name: "l1", Store: slow}},
			Load:  o.limited(20, "v"),
		})
		many(200, func(int) { wantGet(t, c, "k", "v") })
		wantCalls(t, &o, 1)
	})
}

// Figure 3b, and C04: an impatient caller, the first or a later one, gives up at
// 50 ms of a 200 ms load that heeds its context; 20 patient ones get the value.
func TestC04ImpatientCaller(t *testing.T) {
	for _, first := range []bool{true, false} {
		virtual(t, fmt.Sprintf("impatient first %v", first), func(t *testing.T) {
			var o origin
			type key struct{}
			c := newCache(t, coordinator.Options[string, string]{
				Tiers: chain(3),
				Load: func(ctx context.Context, k string) (string, error) {
					if ctx.Value(key{}) == nil {
						t.Error("the loader's context lacks the caller's values")
					}
					return o.after(originLatency, "v")(ctx, k)
				},
			})
			valued := context.WithValue(ctx, key{}, true)
			patient := make(chan error, 20)
			ask := func() {
				for range 20 {
					go func() {
						ctx, cancel := context.WithTimeout(valued, 5*time.Second)
						defer cancel()
						v, err := c.Get(ctx, "k")
						if err == nil && v != "v" {
							err = fmt.Errorf("got %q", v)
						}
						patient <- err
					}()
				}
				synctest.Wait()
			}
			if !first {
				ask()
			}
			start := time.Now()
			impatient := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(valued, 50*time.Millisecond)
				defer cancel()
				_, err := c.Get(ctx, "k")
				impatient <- err
			}()
			synctest.Wait()
			if first {
				ask()
			}
			wantError(t, "impatient caller", <-impatient, context.DeadlineExceeded)
			if got := time.Since(start); got != 50*time.Millisecond {
				t.Errorf("the impatient caller waited %v, want 50ms", got)
			}
			for range 20 {
				if err := <-patient; err != nil {
					t.Errorf("patient caller: %v", err)
				}
			}
			wantCalls(t, &o, 1)
			wantGet(t, c, "k", "v")
			wantCalls(t, &o, 1)
		})
	}
}

// A load that everybody has given up still fills the cache (L2).
func TestLoadGoesOnAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := newCache(t, coordinator.Options[string, string]{Tiers: chain(2), Load: o.after(originLatency, "v")})
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err := c.Get(ctx, "k")
		wantError(t, "Get", err, context.DeadlineExceeded)
		time.Sleep(originLatency)
		synctest.Wait()
		r, err := c.Peek(t.Context(), "k")
		if err != nil || r.Value != "v" {
			t.Errorf("Peek after the load: got %q, %v", r.Value, err)
		}
		wantCalls(t, &o, 1)
	})
}

// Figures 3c and 8, and C06: a failure is shared by all who wait and is not cached.
func TestC06SharedFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		errX := errors.New("x")
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: chain(3),
			Load: func(ctx context.Context, _ string) (string, error) {
				defer o.enter()()
				time.Sleep(100 * time.Millisecond)
				if o.calls.Load() == 1 {
					return "not a value", errX // C14: a value beside an error is none
				}
				return "v", nil
			},
		})
		many(20, func(int) {
			v, err := c.Get(ctx, "k")
			wantError(t, "Get", err, errX)
			if v != "" {
				t.Errorf("got value %q beside the error", v)
			}
		})
		wantCalls(t, &o, 1)
		if _, err := c.Peek(ctx, "k"); !errors.Is(err, coordinator.ErrMiss) {
			t.Errorf("Peek after a failure: got %v, want a miss", err)
		}
		wantGet(t, c, "k", "v")
		wantCalls(t, &o, 2)
	})
}

// Figure 3d: a loader that returns without suspending leaves no flight behind.
func TestStampedeFigure3dSynchronousLoader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    chain(1),
			Lifetime: policy.Lifetime{TTL: time.Second},
			Load:     func(context.Context, string) (string, error) { defer o.enter()(); return "v", nil },
		})
		wantGet(t, c, "k", "v")
		time.Sleep(time.Second)
		wantGet(t, c, "k", "v")
		wantCalls(t, &o, 2)
		synctest.Wait()
		if s := c.Stats(); s.Keys != 0 || s.Flights != 0 {
			t.Errorf("at rest: %d keys, %d flights", s.Keys, s.Flights)
		}
	})
}

// Figure 5: the life of an entry under stale-while-revalidate.
func TestStampedeFigure5StaleWhileRevalidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		var fail atomic.Bool
		c := newCache(t, coordinator.Options[string, int]{
			Tiers:    []tier.Tier[string, int]{memory[int]("l1")},
			Lifetime: policy.Lifetime{TTL: 500 * time.Millisecond, StaleWhileRevalidate: 2 * time.Second},
			Refresh:  policy.StaleWhileRevalidate{},
			Backoff:  policy.Backoff{Initial: 100 * time.Millisecond},
			Load: func(ctx context.Context, _ string) (int, error) {
				defer o.enter()()
				n := o.calls.Load()
				if err := sleep(ctx, originLatency); err != nil {
					return 0, err
				}
				if fail.Load() {
					return 0, errRefused
				}
				return int(n), nil
			},
		})
		timed := func(want int, wantWait time.Duration) {
			t.Helper()
			start := time.Now()
			wantGet(t, c, "k", want)
			if got := time.Since(start); got != wantWait {
				t.Errorf("waited %v, want %v", got, wantWait)
			}
		}
		timed(1, originLatency) // cold
		time.Sleep(500 * time.Millisecond)
		many(200, func(int) { timed(1, 0) })
		synctest.Wait()
		wantCalls(t, &o, 2)
		time.Sleep(originLatency)
		synctest.Wait()
		timed(2, 0)
		wantCalls(t, &o, 2)

		// A refresh that fails leaves the old value, and a later read tries again.
		fail.Store(true)
		time.Sleep(300 * time.Millisecond)
		timed(2, 0)
		synctest.Wait()
		wantCalls(t, &o, 3)
		time.Sleep(originLatency + 100*time.Millisecond)
		fail.Store(false)
		timed(2, 0)
		synctest.Wait()
		wantCalls(t, &o, 4)
		time.Sleep(originLatency)
		synctest.Wait()
		timed(4, 0)

		// Beyond TTL and window it is a hard miss.
		time.Sleep(2500 * time.Millisecond)
		timed(5, originLatency)
	})
}
