package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// L5: when the bound is reached callers wait their turn within their context, or
// get a stale value, or a clear error.
func TestFlightsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		release := make(chan struct{})
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    chain(2),
			Lifetime: policy.Lifetime{TTL: time.Second, StaleIfError: time.Hour},
			Limits:   coordinator.Limits{Flights: 3, LoadTimeout: time.Minute},
			Load: func(ctx context.Context, key string) (string, error) {
				defer o.enter()()
				select {
				case <-release:
					return key, nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			},
		})
		if err := c.Set(ctx, "stale", "old"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for i := range 3 {
			go func() { _, _ = c.Get(ctx, fmt.Sprint("holds", i)) }()
		}
		synctest.Wait()
		wantGet(t, c, "stale", "old")

		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := c.Get(short, "waits")
		wantError(t, "Get", err, coordinator.ErrSaturated)
		wantError(t, "Get", err, context.DeadlineExceeded)

		// One who waits is served when a place is free, joined or not.
		results := make(chan string, 8)
		for i := range 8 {
			go func() {
				v, err := c.Get(ctx, fmt.Sprint("later", i/4))
				results <- fmt.Sprint(v, err)
			}()
		}
		synctest.Wait()
		if got := o.peak.Load(); got != 3 {
			t.Errorf("peak: got %d, want 3", got)
		}
		close(release)
		for range 8 {
			if got := <-results; got != "later0<nil>" && got != "later1<nil>" {
				t.Errorf("got %s", got)
			}
		}
		synctest.Wait()
		wantCalls(t, &o, 5)
		if s := c.Stats(); s.Flights != 0 || s.Keys != 0 || s.Saturated == 0 {
			t.Errorf("stats: %d flights, %d keys, %d saturated", s.Flights, s.Keys, s.Saturated)
		}
	})
}

// Z2: refreshes are bounded; what is shed is counted, and readers are served.
func TestRefreshesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    chain(1),
			Lifetime: policy.Lifetime{TTL: time.Second, StaleWhileRevalidate: time.Hour},
			Refresh:  policy.StaleWhileRevalidate{},
			Limits:   coordinator.Limits{Background: 4},
			Load:     o.after(time.Second, "new"),
		})
		for i := range 100 {
			if err := c.Set(ctx, fmt.Sprint(i), "old"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for i := range 100 {
			wantGet(t, c, fmt.Sprint(i), "old")
		}
		synctest.Wait()
		s := c.Stats()
		if s.Refreshes != 4 || s.RefreshesShed != 96 || s.Flights != 4 {
			t.Errorf("stats: %d refreshes, %d shed, %d flights", s.Refreshes, s.RefreshesShed, s.Flights)
		}
		time.Sleep(time.Second)
		if got := o.peak.Load(); got != 4 {
			t.Errorf("peak: got %d, want 4", got)
		}
	})
}

// The table's memory comes back also when many keys were in flight at once.
func TestManyFlightsAtOnce(t *testing.T) {
	const n = 5_000
	release := make(chan struct{})
	var started atomic.Int64
	c := newCache(t, coordinator.Options[int, int]{
		Tiers:  []tier.Tier[int, int]{{Name: "l1", Store: lru.New[int, int](10)}},
		Limits: coordinator.Limits{LoadTimeout: time.Hour},
		Load: func(_ context.Context, k int) (int, error) {
			started.Add(1)
			<-release
			return k, nil
		},
	})
	go func() {
		for started.Load() < n {
			runtime.Gosched()
		}
		if got := c.Stats().Keys; got != n {
			t.Errorf("keys: got %d, want %d", got, n)
		}
		close(release)
	}()
	many(n, func(i int) { wantGet(t, c, i, i) })
	if got := c.Stats().Keys; got != 0 {
		t.Errorf("keys: got %d, want 0", got)
	}
}

// Z1, C72: calls while and after Close runs, and Close again.
func TestC72UseAfterClose(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			var o origin
			c := newCache(t, coordinator.Options[string, string]{
				Tiers:    chain(3),
				Lifetime: policy.Lifetime{TTL: time.Millisecond, StaleWhileRevalidate: time.Hour},
				Refresh:  policy.StaleWhileRevalidate{},
				Load:     o.after(5*time.Millisecond, "v"),
			})
			var stop atomic.Bool
			done := make(chan struct{})
			go func() {
				defer close(done)
				many(50, func(i int) {
					for !stop.Load() {
						key := fmt.Sprint(i % 7)
						var err error
						switch i % 5 {
						case 0:
							err = c.Set(ctx, key, "v")
						case 1:
							err = c.Delete(ctx, key)
						case 2:
							err = c.Expire(ctx, key)
						case 3:
							_, err = c.Lookup(ctx, key)
						default:
							_, err = c.Get(ctx, key)
						}
						if err != nil && !errors.Is(err, coordinator.ErrClosed) {
							t.Errorf("got %v, want nil or ErrClosed", err)
						}
						time.Sleep(100 * time.Microsecond)
					}
				})
			}()
			time.Sleep(8 * time.Millisecond) // the first loads have ended, and are repeated
			many(3, func(int) {
				if err := c.Close(ctx); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			for name, call := range map[string]func() error{
				"Get":       func() error { _, err := c.Get(ctx, "0"); return err },
				"Lookup":    func() error { _, err := c.Lookup(ctx, "0"); return err },
				"Peek":      func() error { _, err := c.Peek(ctx, "0"); return err },
				"GetOrLoad": func() error { _, err := c.GetOrLoad(ctx, "0", nil); return err },
				"Set":       func() error { return c.Set(ctx, "0", "v") },
				"Delete":    func() error { return c.Delete(ctx, "0") },
				"Expire":    func() error { return c.Expire(ctx, "0") },
				"Clear":     func() error { return c.Clear(ctx) },
				"SetPolicy": func() error { return c.SetPolicy(policy.Fixed{}) },
			} {
				wantError(t, name+" after Close", call(), coordinator.ErrClosed)
			}
			if err := c.Close(ctx); err != nil {
				t.Errorf("second Close: %v", err)
			}
			_ = c.Stats()
			stop.Store(true)
			<-done
			synctest.Wait() // the bubble's end fails if a goroutine of ours is left
		})
	}
}

// Z1: Close drains within its context, then cancels, and its waiters get ErrClosed.
func TestCloseDrainsThenCancels(t *testing.T) {
	for _, patience := range []time.Duration{time.Second, 10 * time.Second} {
		virtual(t, patience.String(), func(t *testing.T) {
			var o origin
			c := newCache(t, coordinator.Options[string, string]{
				Tiers:    chain(2),
				Lifetime: policy.Lifetime{TTL: time.Second, StaleWhileRevalidate: time.Hour},
				Refresh:  policy.StaleWhileRevalidate{},
				Load:     o.after(5*time.Second, "v"),
			})
			for i := range 10 {
				if err := c.Set(ctx, fmt.Sprint(i), "old"); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			for i := range 10 {
				wantGet(t, c, fmt.Sprint(i), "old") // ten refreshes
			}
			waiter := make(chan error, 1)
			go func() { _, err := c.Get(ctx, "miss"); waiter <- err }()
			synctest.Wait()
			start := time.Now()
			closing, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			err := c.Close(closing)
			if patience < 5*time.Second {
				wantError(t, "Close", err, context.DeadlineExceeded)
				wantError(t, "the waiter", <-waiter, coordinator.ErrClosed)
				if got := time.Since(start); got != patience {
					t.Errorf("closed after %v", got)
				}
			} else {
				if err != nil {
					t.Errorf("Close: %v", err)
				}
				if err := <-waiter; err != nil {
					t.Errorf("the waiter: %v", err)
				}
				if got := time.Since(start); got != 5*time.Second {
					t.Errorf("closed after %v", got)
				}
			}
			synctest.Wait()
			if got := o.running.Load(); got != 0 {
				t.Errorf("%d loaders are left", got)
			}
		})
	}
}

// A loader that heeds nothing does not keep Close for ever.
func TestCloseDoesNotWaitForHungLoader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:  chain(1),
			Limits: coordinator.Limits{LoadTimeout: time.Second},
			Load:   func(context.Context, string) (string, error) { <-release; return "v", nil },
		})
		_, err := c.Get(ctx, "k")
		wantError(t, "Get", err, coordinator.ErrLoadTimeout)
		if err := c.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		close(release)
	})
}

// Close without any use leaves nothing behind.
func TestCloseUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newCache(t, coordinator.Options[string, string]{Tiers: chain(5)})
	})
}

// One who waits for a turn when the cache is closed does not wait on.
func TestCloseEndsWaitingForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:  chain(1),
			Limits: coordinator.Limits{Flights: 1, LoadTimeout: time.Hour},
			Load:   func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() },
		})
		errs := make(chan error, 2)
		for _, key := range []string{"holds", "waits"} {
			go func() { _, err := c.Get(ctx, key); errs <- err }()
			synctest.Wait()
		}
		closing, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		wantError(t, "Close", c.Close(closing), context.DeadlineExceeded)
		for range 2 {
			wantError(t, "Get", <-errs, coordinator.ErrClosed)
		}
	})
}

// A caller whose context is over starts no load.
func TestContextOverStartsNothing(t *testing.T) {
	var o origin
	c := newCache(t, coordinator.Options[string, string]{Tiers: chain(2), Load: o.after(0, "v")})
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err := c.Get(over, "k")
	wantError(t, "Get", err, context.Canceled)
	wantCalls(t, &o, 0)
	wantGet(t, c, "k", "v")
	if v, err := c.Get(over, "k"); err != nil || v != "v" {
		t.Errorf("a hit needs no context: got %q, %v", v, err)
	}
}

// A load that a loader waits for does not wait for the place that its loader has.
func TestNestedLoadsHaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *coordinator.Cache[string, string]
		c = newCache(t, coordinator.Options[string, string]{
			Tiers:  []tier.Tier[string, string]{memory[string]("l1")},
			Limits: coordinator.Limits{Flights: 1},
			Load: func(ctx context.Context, k string) (string, error) {
				if k == "a" {
					return c.Get(ctx, "b")
				}
				return "v", nil
			},
		})
		began := time.Now()
		v, err := c.Get(ctx, "a")
		if err != nil {
			t.Errorf("%q %v after %v", v, err, time.Since(began))
		}
	})
}

// A flight has left its place when its answer is there.
func TestPlaceIsFreeWhenTheAnswerIsThere(t *testing.T) {
	c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")}, Limits: coordinator.Limits{Flights: 1},
		Load: func(context.Context, string) (string, error) { return "v", nil }})
	for i := range 20000 {
		_, _ = c.Get(ctx, fmt.Sprint(i))
	}
	if n := c.Stats().Saturated; n > 0 {
		t.Errorf("one sequential caller, Flights 1: saturated %d times", n)
	}
}
