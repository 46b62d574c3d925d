package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// ends are the ways for a loader to end without an answer.
var ends = map[string]struct {
	how   func()
	check func(t *testing.T, err error)
}{
	"panic": {func() { panic("boom") }, func(t *testing.T, err error) {
		var p *coordinator.PanicError
		if !errors.As(err, &p) || p.Value != "boom" || !strings.Contains(string(p.Stack), "load_test.go") {
			t.Errorf("got %v, want a PanicError with the stack", err)
		}
	}},
	"panic with an error": {func() { panic(io.ErrUnexpectedEOF) }, func(t *testing.T, err error) {
		wantError(t, "Get", err, io.ErrUnexpectedEOF)
	}},
	// A panic is a failure whatever it carries.
	"panic with ErrAbsent": {func() { panic(tier.ErrAbsent) }, func(t *testing.T, err error) {
		var p *coordinator.PanicError
		if !errors.As(err, &p) {
			t.Errorf("got %v, want a PanicError", err)
		}
	}},
	"panic(nil)": {func() { panic(nil) }, func(t *testing.T, err error) {
		var p *coordinator.PanicError
		if !errors.As(err, &p) {
			t.Errorf("got %v, want a PanicError", err)
		}
	}},
	"Goexit": {runtime.Goexit, func(t *testing.T, err error) { wantError(t, "Get", err, coordinator.ErrGoexit) }},
}

// C02: a loader panics on a miss with waiters.
func TestC02LoaderEndsOnMiss(t *testing.T) {
	for name, end := range ends {
		virtual(t, name, func(t *testing.T) {
			var o origin
			c := newCache(t, coordinator.Options[string, string]{
				Tiers: chain(3),
				Load: func(context.Context, string) (string, error) {
					defer o.enter()()
					time.Sleep(time.Millisecond)
					if o.calls.Load() == 1 {
						end.how()
					}
					return "v", nil
				},
			})
			many(6, func(int) {
				_, err := c.Get(ctx, "k")
				if err == nil {
					t.Error("got no error")
					return
				}
				end.check(t, err)
			})
			wantCalls(t, &o, 1)
			wantGet(t, c, "k", "v") // the key is free
			synctest.Wait()
			if s := c.Stats(); s.LoaderPanics != 1 || s.Flights != 0 || s.Keys != 0 {
				t.Errorf("stats: %d panics, %d flights, %d keys", s.LoaderPanics, s.Flights, s.Keys)
			}
		})
	}
}

// C02: a loader panics in a background refresh, under each policy that has one.
func TestC02LoaderEndsInRefresh(t *testing.T) {
	for _, p := range []policy.Strategy{policy.StaleWhileRevalidate{}, policy.XFetch{Rand: func() float64 { return 1 - 0x1p-53 }}} {
		for name, end := range ends {
			virtual(t, policy.NameOf(p)+" "+name, func(t *testing.T) {
				var o origin
				c := newCache(t, coordinator.Options[string, string]{
					Tiers:    chain(2),
					Lifetime: policy.Lifetime{TTL: time.Second, StaleWhileRevalidate: time.Minute},
					Refresh:  p,
					Backoff:  policy.Backoff{Initial: 10 * time.Millisecond},
					Load: func(context.Context, string) (string, error) {
						defer o.enter()()
						time.Sleep(100 * time.Millisecond)
						if o.calls.Load() == 2 {
							end.how()
						}
						return fmt.Sprintf("v%d", o.calls.Load()), nil
					},
				})
				wantGet(t, c, "k", "v1")
				time.Sleep(time.Second)
				wantGet(t, c, "k", "v1") // starts the refresh that ends badly
				time.Sleep(time.Second)
				wantCalls(t, &o, 2)
				wantGet(t, c, "k", "v1") // still usable, and the next refresh
				time.Sleep(time.Second)
				wantCalls(t, &o, 3)
				wantGet(t, c, "k", "v3")
			})
		}
	}
}

// C02, the kind: other code of the user's that runs in the background panics.
func TestC02OtherCodeEnds(t *testing.T) {
	for _, op := range []string{"get", "set", "delete"} {
		virtual(t, "store "+op, func(t *testing.T) {
			var armed atomic.Bool
			bad := hook(memory[string]("").Store, func(_ context.Context, o, _ string) error {
				if o == op && armed.Load() {
					panic("store")
				}
				return nil
			})
			c := newCache(t, coordinator.Options[string, string]{
				Tiers: []tier.Tier[string, string]{memory[string]("l1"), {Name: "l2", Store: bad}},
				Load:  func(context.Context, string) (string, error) { return "v", nil },
			})
			armed.Store(true)
			if _, err := c.Get(ctx, "k"); err == nil && op == "get" {
				t.Log("a store that panics is a tier that fails")
			}
			armed.Store(false)
			if err := c.Delete(ctx, "k"); err != nil {
				t.Error(err)
			}
			wantGet(t, c, "k", "v")
			synctest.Wait()
			if s := c.Stats(); s.Keys != 0 || s.Flights != 0 {
				t.Errorf("at rest: %d keys, %d flights", s.Keys, s.Flights)
			}
		})
	}
	virtual(t, "log handler", func(t *testing.T) {
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:  chain(1),
			Logger: slog.New(panicHandler{}),
			Load:   func(context.Context, string) (string, error) { return "", io.ErrUnexpectedEOF },
		})
		_, err := c.Get(ctx, "k")
		wantError(t, "Get", err, io.ErrUnexpectedEOF)
	})
}

type panicHandler struct{ slog.Handler }

func (panicHandler) Enabled(context.Context, slog.Level) bool { panic("handler") }

// L3: a loader that hangs loses its flight at the time limit, and what it returns
// later is not stored.
func TestLoaderHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		release := make(chan struct{})
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:  chain(2),
			Limits: coordinator.Limits{LoadTimeout: time.Second},
			Load: func(context.Context, string) (string, error) {
				defer o.enter()()
				if o.calls.Load() == 1 {
					<-release // whatever its context says
					return "late", nil
				}
				return "v", nil
			},
		})
		start := time.Now()
		many(3, func(int) {
			_, err := c.Get(ctx, "k")
			wantError(t, "Get", err, coordinator.ErrLoadTimeout)
		})
		if got := time.Since(start); got != time.Second {
			t.Errorf("waited %v, want 1s", got)
		}
		wantGet(t, c, "k", "v")
		synctest.Wait()
		if got := c.Stats().Flights; got != 1 {
			t.Errorf("flights: got %d, want the hanging one", got)
		}
		close(release)
		synctest.Wait()
		wantGet(t, c, "k", "v")
		if s := c.Stats(); s.Flights != 0 || s.LoaderTimeouts != 1 {
			t.Errorf("flights %d, timeouts %d", s.Flights, s.LoaderTimeouts)
		}
	})
}

// C12: loaders that wait for each other, and keys that have nothing to do with each
// other.
func TestC12LoadersWaitForEachOther(t *testing.T) {
	virtual(t, "a cycle from two goroutines", func(t *testing.T) {
		var c *coordinator.Cache[string, string]
		next := map[string]string{"a": "b", "b": "c", "c": "a"}
		c = newCache(t, coordinator.Options[string, string]{
			Name:  "ring",
			Tiers: chain(1),
			Load: func(ctx context.Context, key string) (string, error) {
				time.Sleep(time.Millisecond)
				v, err := c.Get(ctx, next[key])
				return key + v, err
			},
		})
		start := time.Now()
		many(3, func(i int) {
			_, err := c.Get(ctx, string("abc"[i]))
			wantError(t, "Get", err, coordinator.ErrCycle)
			var cycle *coordinator.CycleError
			if !errors.As(err, &cycle) || len(cycle.Path) != 4 || !strings.HasPrefix(cycle.Path[0], "ring: ") || cycle.Path[0] != cycle.Path[3] {
				t.Errorf("got %v, want the way round", err)
			}
		})
		if got := time.Since(start); got > 10*time.Millisecond {
			t.Errorf("found after %v", got)
		}
	})
	virtual(t, "its own key", func(t *testing.T) {
		var c *coordinator.Cache[string, string]
		c = newCache(t, coordinator.Options[string, string]{
			Tiers: chain(2),
			Load:  func(ctx context.Context, key string) (string, error) { return c.Get(ctx, key) },
		})
		_, err := c.Get(ctx, "k")
		wantError(t, "Get", err, coordinator.ErrCycle)
	})
	virtual(t, "its own key, deleted meanwhile", func(t *testing.T) {
		var c *coordinator.Cache[string, string]
		var o origin
		c = newCache(t, coordinator.Options[string, string]{
			Tiers: chain(2),
			Load: func(ctx context.Context, key string) (string, error) {
				defer o.enter()()
				if err := c.Delete(ctx, key); err != nil {
					return "", err
				}
				return c.Get(ctx, key)
			},
		})
		_, err := c.Get(ctx, "k")
		wantError(t, "Get", err, coordinator.ErrCycle)
		wantCalls(t, &o, 1)
	})
	virtual(t, "over two caches", func(t *testing.T) {
		var a, b *coordinator.Cache[string, string]
		a = newCache(t, coordinator.Options[string, string]{
			Tiers: chain(1), Load: func(ctx context.Context, key string) (string, error) { return b.Get(ctx, key) },
		})
		b = newCache(t, coordinator.Options[string, string]{
			Tiers: chain(1), Load: func(ctx context.Context, key string) (string, error) { return a.Get(ctx, key) },
		})
		_, err := a.Get(ctx, "k")
		wantError(t, "Get", err, coordinator.ErrCycle)
	})
	virtual(t, "its own key, with a context of its own", func(t *testing.T) {
		var c *coordinator.Cache[string, string]
		c = newCache(t, coordinator.Options[string, string]{
			Tiers:  chain(1),
			Limits: coordinator.Limits{LoadTimeout: time.Second},
			Load:   func(_ context.Context, key string) (string, error) { return c.Get(context.Background(), key) },
		})
		start := time.Now()
		_, err := c.Get(ctx, "k")
		wantError(t, "Get", err, coordinator.ErrLoadTimeout)
		if got := time.Since(start); got != time.Second {
			t.Errorf("ended after %v, want 1s", got)
		}
	})
	virtual(t, "no cycle: a diamond, and many keys under each other", func(t *testing.T) {
		var c *coordinator.Cache[string, string]
		c = newCache(t, coordinator.Options[string, string]{
			Tiers: chain(1),
			Load: func(ctx context.Context, key string) (string, error) {
				time.Sleep(time.Millisecond)
				if len(key) > 6 {
					return "", nil
				}
				var err error
				many(2, func(i int) {
					if _, e := c.Get(ctx, key+string("ab"[i])); e != nil {
						err = e
					}
				})
				_, e := c.Get(ctx, "shared, which is long")
				return "", errors.Join(err, e)
			},
		})
		if _, err := c.Get(ctx, "x"); err != nil {
			t.Error(err)
		}
	})
}

// L6: an unrelated key never waits for another's load, wherever its hash falls.
func TestC12UnrelatedKeysDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: chain(2),
			Load: func(ctx context.Context, key string) (string, error) {
				if strings.HasPrefix(key, "slow") {
					select {
					case <-release:
					case <-ctx.Done():
					}
				}
				return key, nil
			},
		})
		for i := range 100 {
			go func() { _, _ = c.Get(ctx, fmt.Sprintf("slow%d", i)) }()
		}
		synctest.Wait()
		start := time.Now()
		for i := range 1000 {
			key := fmt.Sprintf("fast%d", i)
			wantGet(t, c, key, key)
			if err := c.Set(ctx, key, "set"); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("waited %v", got)
		}
	})
}

// C14: errors are never stored as values; only "not found" makes an absent entry.
func TestC14ErrorIsNoValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		fail := []error{io.ErrUnexpectedEOF, context.Canceled, coordinator.ErrMiss, nil}
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: chain(3),
			Load: func(context.Context, string) (string, error) {
				defer o.enter()()
				return "v", fail[o.calls.Load()-1]
			},
		})
		for _, want := range fail[:3] {
			v, err := c.Get(ctx, "k")
			wantError(t, "Get", err, want)
			if v != "" {
				t.Errorf("got value %q beside the error", v)
			}
		}
		wantGet(t, c, "k", "v")
		wantGet(t, c, "k", "v")
		wantCalls(t, &o, 4)
	})
}

// L4: an absence is cached for its own time, and a Set or a load ends it.
func TestAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		var exists atomic.Bool
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    chain(3),
			Lifetime: policy.Lifetime{TTL: time.Minute, Absent: 5 * time.Second},
			Load: func(context.Context, string) (string, error) {
				defer o.enter()()
				if exists.Load() {
					return "v", nil
				}
				return "ignored", fmt.Errorf("row: %w", tier.ErrAbsent)
			},
		})
		for range 10 {
			v, err := c.Get(ctx, "k")
			wantError(t, "Get", err, coordinator.ErrAbsent)
			if v != "" {
				t.Errorf("got value %q", v)
			}
			r, err := c.Lookup(ctx, "k")
			if err != nil || r.State != coordinator.Absent {
				t.Errorf("Lookup: got %v, %v", r, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		wantCalls(t, &o, 1)
		if s := c.Stats(); s.Absent != 19 || s.Loads != 1 {
			t.Errorf("stats: %d absent, %d loads", s.Absent, s.Loads)
		}
		exists.Store(true)
		time.Sleep(4 * time.Second)
		wantGet(t, c, "k", "v")
		wantCalls(t, &o, 2)

		exists.Store(false)
		if err := c.Delete(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		_, err := c.Get(ctx, "k")
		wantError(t, "Get", err, coordinator.ErrAbsent)
		if err := c.Set(ctx, "k", "set"); err != nil {
			t.Fatal(err)
		}
		wantGet(t, c, "k", "set")
	})
}

// Without an absent TTL absences are not cached, and what was there before is gone.
func TestAbsentNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    chain(2),
			Lifetime: policy.Lifetime{TTL: time.Second, StaleIfError: time.Hour},
			Load: func(context.Context, string) (string, error) {
				defer o.enter()()
				return "", tier.ErrAbsent
			},
		})
		if err := c.Set(ctx, "k", "old"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for range 2 {
			_, err := c.Get(ctx, "k")
			wantError(t, "Get", err, coordinator.ErrAbsent)
		}
		wantCalls(t, &o, 2)
		synctest.Wait() // what is not kept is told before the old value is gone
		if r, err := c.Peek(ctx, "k"); err == nil {
			t.Errorf("%s still has %q", r.Tier, r.Value)
		}
	})
}

// C16: a refresh that keeps failing is spaced by a cool-down that grows and is
// counted from the end of the failed try, however long that took.
func TestC16RefreshKeepsFailing(t *testing.T) {
	for _, take := range []time.Duration{100 * time.Millisecond, 10 * time.Second} {
		virtual(t, take.String(), func(t *testing.T) {
			var o origin
			var up atomic.Bool
			var lastEnd time.Time
			var gaps []time.Duration
			c := newCache(t, coordinator.Options[string, string]{
				Tiers:    chain(2),
				Lifetime: policy.Lifetime{TTL: time.Second, StaleWhileRevalidate: time.Hour},
				Refresh:  policy.StaleWhileRevalidate{},
				Limits:   coordinator.Limits{LoadTimeout: time.Minute},
				Load: func(context.Context, string) (string, error) {
					defer o.enter()()
					if !lastEnd.IsZero() {
						gaps = append(gaps, time.Since(lastEnd))
					}
					if up.Load() {
						return "new", nil
					}
					time.Sleep(take)
					lastEnd = time.Now()
					return "", io.ErrUnexpectedEOF
				},
			})
			if err := c.Set(ctx, "k", "old"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			read := func(d time.Duration) {
				for range int(d / (2 * time.Millisecond)) {
					if v, err := c.Get(ctx, "k"); err != nil || v != "old" && !up.Load() {
						t.Fatalf("Get: got %q, %v", v, err)
					}
					time.Sleep(2 * time.Millisecond)
				}
			}
			read(30 * time.Second)
			if got := o.calls.Load(); got < 2 || got > 12 {
				t.Errorf("loads in 30 s: got %d, want a few", got)
			}
			synctest.Wait()
			for i, gap := range gaps {
				least := min(250*time.Millisecond<<i, 10*time.Second) / 2
				if gap < least {
					t.Errorf("pause %d: got %v, want at least %v", i+1, gap, least)
				}
			}
			up.Store(true)
			calls := o.calls.Load()
			read(10*time.Second + take)
			if got := o.calls.Load() - calls; got < 1 {
				t.Error("not loaded again within one cool-down of the recovery")
			}
			wantGet(t, c, "k", "new")
			if got := o.peak.Load(); got != 1 {
				t.Errorf("peak: got %d, want 1", got)
			}
		})
	}
}

// C16, the kind: under the fixed policy with stale-if-error the failed load is a
// reader's own, and its successors do not wait for another.
func TestC16StaleIfError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    chain(2),
			Lifetime: policy.Lifetime{TTL: time.Second, StaleIfError: time.Hour},
			Load: func(ctx context.Context, _ string) (string, error) {
				defer o.enter()()
				time.Sleep(100 * time.Millisecond)
				return "", io.ErrUnexpectedEOF
			},
		})
		if err := c.Set(ctx, "k", "old"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		start := time.Now()
		many(10, func(int) {
			r, err := c.Lookup(ctx, "k")
			if err != nil || r.Value != "old" || r.State != coordinator.Stale {
				t.Errorf("Lookup: got %v, %v", r, err)
			}
		})
		if got := time.Since(start); got != 100*time.Millisecond {
			t.Errorf("waited %v", got)
		}
		for range 50 {
			wantGet(t, c, "k", "old")
		}
		wantCalls(t, &o, 1)
		if got := time.Since(start); got != 100*time.Millisecond {
			t.Errorf("waited %v in the cool-down", got)
		}
		if got := c.Stats().Stale; got != 60 {
			t.Errorf("stale: got %d, want 60", got)
		}
		time.Sleep(time.Hour)
		_, err := c.Get(ctx, "k") // past usable-until
		wantError(t, "Get", err, io.ErrUnexpectedEOF)
	})
}

// The richer loader sees what it replaces, and can say more of its answer.
func TestEntryLoader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers = []coordinator.Loaded[string]{
			{Value: "v1", Validator: "etag1"},
			{NotModified: true, TTL: 10 * time.Second},
			{Value: "v3", NoStore: true},
			{Value: "v4"},
		}
		var saw []string
		n := 0
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    chain(2),
			Lifetime: policy.Lifetime{TTL: time.Second, StaleIfError: time.Hour},
			LoadEntry: func(_ context.Context, _ string, previous *tier.Entry[string]) (coordinator.Loaded[string], error) {
				if previous == nil {
					saw = append(saw, "nothing")
				} else {
					saw = append(saw, previous.Value()+" "+previous.Validator())
				}
				n++
				return answers[n-1], nil
			},
		})
		wantGet(t, c, "k", "v1")
		time.Sleep(time.Second)
		wantGet(t, c, "k", "v1") // not modified
		time.Sleep(9 * time.Second)
		wantGet(t, c, "k", "v1") // for its own TTL
		if n != 2 {
			t.Errorf("loads: got %d, want 2", n)
		}
		time.Sleep(time.Second)
		wantGet(t, c, "k", "v3")
		wantGet(t, c, "k", "v4") // v3 was not stored, and v1 did not stay
		want := []string{"nothing", "v1 etag1", "v1 etag1", "nothing"}
		if fmt.Sprint(saw) != fmt.Sprint(want) {
			t.Errorf("previous: got %q, want %q", saw, want)
		}
		_, err := coordinator.New(coordinator.Options[string, string]{Tiers: chain(1), Lifetime: policy.Lifetime{TTL: 1},
			Load: func(context.Context, string) (string, error) { return "", nil },
			LoadEntry: func(context.Context, string, *tier.Entry[string]) (l coordinator.Loaded[string], _ error) {
				return l, nil
			}})
		if err == nil {
			t.Error("New took two loaders")
		}
	})
}

func TestGetOrLoad(t *testing.T) {
	c := newCache(t, coordinator.Options[string, string]{Tiers: chain(2)})
	_, err := c.Get(ctx, "k")
	wantError(t, "Get without a loader", err, coordinator.ErrMiss)
	for range 2 {
		v, err := c.GetOrLoad(ctx, "k", func(context.Context, string) (string, error) { return "mine", nil })
		if err != nil || v != "mine" {
			t.Errorf("GetOrLoad: got %q, %v", v, err)
		}
	}
	wantGet(t, c, "k", "mine")
}

// A refresh whose load outlasts the entry that it replaces is stored all the same.
func TestRefreshOutlivesTheEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", storetest.NewMapBytes())},
			Lifetime: policy.Lifetime{TTL: 10 * time.Second},
			Refresh:  policy.XFetch{Rand: func() float64 { return 0.9 }},
			Load:     o.after(time.Second, "v"),
		})
		wantGet(t, c, "k", "v")             // loaded at 0
		time.Sleep(8500 * time.Millisecond) // t=9.5
		wantGet(t, c, "k", "v")             // starts refresh
		time.Sleep(1500 * time.Millisecond) // t=11 ; refresh ended at 10.5
		wantCalls(t, &o, 2)
		_, err := c.Peek(ctx, "k")
		t.Logf("peek: %v, fenced %d", err, c.Stats().Fenced)
		if err != nil {
			t.Errorf("refreshed value stored nowhere: %v", err)
		}
	})
}

// A value that must not be stored is not stored by way of a failed write either.
func TestNoStoreIsNeverKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fb := storetest.NewFaultyBytes(storetest.NewMapBytes())
		fb.SetRemote()
		n := 0
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", fb)},
			Lifetime: policy.Lifetime{TTL: time.Minute},
			LoadEntry: func(context.Context, string, *tier.Entry[string]) (coordinator.Loaded[string], error) {
				n++
				return coordinator.Loaded[string]{Value: "secret", NoStore: true}, nil
			},
		})
		fb.Inject(storetest.Fail(errors.New("down")))
		wantGet(t, c, "k", "secret")
		wantGet(t, c, "k", "secret")
		if n != 2 {
			t.Errorf("NoStore value served from cache: %d loads", n)
		}
		fb.Heal()
		time.Sleep(20 * time.Second)
		if r, err := c.Peek(ctx, "k"); err == nil {
			t.Errorf("NoStore value stored in %s: %v", r.Tier, r.Value)
		}
	})
}

// One who has a loader does not share the miss of one who has none.
func TestLoaderIsNotLostByJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fb := storetest.NewFaultyBytes(storetest.NewMapBytes())
		fb.SetRemote()
		fb.Inject(storetest.Slow(50*time.Millisecond), storetest.Get)
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", fb)},
		})
		go c.Get(ctx, "k")
		time.Sleep(10 * time.Millisecond)
		v, err := c.GetOrLoad(ctx, "k", func(context.Context, string) (string, error) { return "v", nil })
		if err != nil || v != "v" {
			t.Errorf("GetOrLoad: %q %v", v, err)
		}
	})
}

// An absence does not become a zero value by "not modified".
func TestNotModifiedAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{memory[string]("l1")},
			Lifetime: policy.Lifetime{TTL: time.Minute, Absent: time.Minute, StaleIfError: time.Hour},
			LoadEntry: func(_ context.Context, _ string, p *tier.Entry[string]) (coordinator.Loaded[string], error) {
				if p != nil && p.Validator() == "e404" {
					return coordinator.Loaded[string]{NotModified: true}, nil
				}
				return coordinator.Loaded[string]{Validator: "e404"}, tier.ErrAbsent
			},
		})
		_, err := c.Get(ctx, "k")
		wantError(t, "first", err, tier.ErrAbsent)
		_ = c.Expire(ctx, "k")
		v, err := c.Get(ctx, "k")
		if !errors.Is(err, tier.ErrAbsent) {
			t.Errorf("absent became a value: %q, %v", v, err)
		}
	})
}

type nilErr struct{ s string }

func (e *nilErr) Error() string { return e.s }

// A store that returns an error which panics does not take the process down.
func TestTypedNilErrorInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := storetest.NewFaulty(storetest.NewMap[string, string]())
		fs.SetRemote()
		fs.Inject(storetest.Fail(errors.New("down")))
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:   []tier.Tier[string, string]{memory[string]("l1"), {Name: "l2", Store: fs}},
			Backoff: policy.Backoff{Initial: 10 * time.Millisecond},
		})
		_ = c.Set(ctx, "a", "1")
		var none *nilErr
		fs.Inject(storetest.Fail(none))
		fs.ForgetCalls()
		time.Sleep(1500 * time.Millisecond)
		if fs.Count() == 0 {
			t.Error("the write was not tried again")
		}
	})
}

// The cause of a context is in the error.
func TestCauseOfContextIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")}, Load: o.after(time.Second, "v")})
		why := errors.New("shutting down")
		x, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		_, err := c.Get(x, "k")
		if !errors.Is(err, why) {
			t.Errorf("cause lost: %v", err)
		}
	})
}

// A TTL below zero, as of a token that has expired, is not the default one.
func TestNegativeTTLIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")},
			LoadEntry: func(context.Context, string, *tier.Entry[string]) (coordinator.Loaded[string], error) {
				n++
				return coordinator.Loaded[string]{Value: "token", TTL: -time.Second}, nil
			}})
		c.Get(ctx, "k")
		time.Sleep(30 * time.Second)
		c.Get(ctx, "k")
		if n != 2 {
			t.Errorf("TTL -1s was cached for the default minute (%d loads)", n)
		}
	})
}

// A key whose loader hangs does not stop the refreshes of others.
func TestOneHungKeyDoesNotStopRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var hung, peak atomic.Int64
		loads := map[string]int{}
		var mu sync.Mutex
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{memory[string]("l1")},
			Lifetime: policy.Lifetime{TTL: time.Second, StaleWhileRevalidate: 10 * time.Hour},
			Refresh:  policy.StaleWhileRevalidate{},
			Load: func(ctx context.Context, k string) (string, error) {
				mu.Lock()
				loads[k]++
				n := loads[k]
				mu.Unlock()
				if k == "bad" && n > 1 {
					if h := hung.Add(1); h > peak.Load() {
						peak.Store(h)
					}
					<-release
					hung.Add(-1)
				}
				return "v", nil
			}})
		defer close(release)
		for range 1800 {
			c.Get(ctx, "bad")
			time.Sleep(time.Second)
		}
		s := c.Stats()
		mu.Lock()
		before := loads["good"]
		mu.Unlock()
		for range 60 {
			c.Get(ctx, "good")
			time.Sleep(time.Second)
		}
		mu.Lock()
		after := loads["good"]
		mu.Unlock()
		t.Logf("loaders of one key at once: %d; good loads in 60 s: %d; shed %d->%d", peak.Load(), after-before, s.RefreshesShed, c.Stats().RefreshesShed)
		if after-before < 10 {
			t.Errorf("one hanging key stopped the refreshes of all others")
		}
	})
}

// A loader may say how long its "none" holds.
func TestAbsenceWithItsOwnTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")}, Lifetime: policy.Lifetime{TTL: time.Minute, Absent: 5 * time.Second},
			LoadEntry: func(context.Context, string, *tier.Entry[string]) (coordinator.Loaded[string], error) {
				n++
				return coordinator.Loaded[string]{TTL: time.Hour}, tier.ErrAbsent
			}})
		c.Get(ctx, "k")
		time.Sleep(10 * time.Second)
		c.Get(ctx, "k")
		if n != 1 {
			t.Errorf("loads %d: Loaded.TTL is ignored for absent", n)
		}
	})
}

// A loader that returns at its time limit and one that does not end in the same error.
func TestTimeoutErrorIsAlwaysTheSame(t *testing.T) {
	c := newCache(t, coordinator.Options[int, int]{Tiers: []tier.Tier[int, int]{{Name: "l1", Store: storetest.NewMap[int, int]()}}, Limits: coordinator.Limits{LoadTimeout: time.Millisecond},
		Load: func(ctx context.Context, _ int) (int, error) {
			for ctx.Err() == nil {
			}
			return 0, ctx.Err()
		}})
	other := 0
	for i := range 600 { // in one of a hundred they differed
		if _, err := c.Get(ctx, i); !errors.Is(err, coordinator.ErrLoadTimeout) {
			other++
		}
	}
	if other > 0 {
		t.Errorf("%d of 600 timeouts are not ErrLoadTimeout; LoaderTimeouts %d", other, c.Stats().LoaderTimeouts)
	}
}
