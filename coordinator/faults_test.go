package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// Faults on top of faults, each of which has broken a rule once.

// A caller whose context ends while a dead answer is being stored gives up. In real time: a spin would keep virtual time from advancing.
func TestNoSpinAtEndOfContext(t *testing.T) {
	release := make(chan struct{})
	fs := storetest.NewFaulty(storetest.NewMap[string, string]()) // in memory
	fs.Inject(storetest.Hold(release), storetest.Set)
	var o origin
	c := newCache(t, coordinator.Options[string, string]{
		Tiers:    []tier.Tier[string, string]{{Name: "l1", Store: fs}},
		Lifetime: policy.Lifetime{TTL: 100 * time.Millisecond},
		Load:     o.after(0, "v"),
	})
	go c.Get(ctx, "k")
	eventually(t, "the store of what was loaded", func() bool { return fs.Count(storetest.Set) > 0 })
	<-time.After(100 * time.Millisecond) // the life began before; it is over
	time.AfterFunc(time.Second, func() { close(release) })
	mine, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	cc := &countCtx{Context: mine}
	began := time.Now()
	_, err := c.Get(cc, "k")
	wantError(t, "Get", err, context.DeadlineExceeded)
	if got := cc.n.Load(); got > 100 {
		t.Errorf("the caller of 20 ms looked at its context %d times in %v", got, time.Since(began))
	}
}

type countCtx struct {
	context.Context
	n atomic.Int64
}

func (c *countCtx) Done() <-chan struct{} { c.n.Add(1); return c.Context.Done() }

// The same where the turn is taken by a write that is tried again.
func TestNoSpinBehindRepeat(t *testing.T) {
	fb := storetest.NewFaultyBytes(storetest.NewMapBytes())
	fb.SetRemote()
	l3 := shared[string]("l3", fb)
	l3.Timeout = 500 * time.Millisecond
	var o origin
	c := newCache(t, coordinator.Options[string, string]{
		Tiers:    []tier.Tier[string, string]{l3},
		Lifetime: policy.Lifetime{TTL: 1050 * time.Millisecond},
		Backoff:  policy.Backoff{},
		Load:     o.after(0, "v"),
	})
	fb.Inject(storetest.Fail(errDown))
	_ = c.SetWith(ctx, "k", coordinator.Loaded[string]{Value: "s", TTL: 10 * time.Millisecond})
	fb.Inject(storetest.BlackHole())
	fb.ForgetCalls()
	time.Sleep(20 * time.Millisecond)
	for fb.Count(storetest.Get) == 0 { // the worker has the turn
		time.Sleep(time.Millisecond)
	}
	fb.Inject(storetest.BlackHole())
	go c.Get(ctx, "k")
	var worst time.Duration
	var spins int64
	for range 80 {
		mine, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		cc := &countCtx{Context: mine}
		began := time.Now()
		_, _ = c.Get(cc, "k")
		worst, spins = max(worst, time.Since(began)), max(spins, cc.n.Load())
		cancel()
	}
	if spins > 100 {
		t.Errorf("a caller of 20 ms looked at its context %d times in %v", spins, worst)
	}
	fb.Heal()
}

// What is tried again for longer than a tombstone stays is not stored over a Delete that has left no trace.
func TestRepeatOutlivesTombstone(t *testing.T) {
	for _, how := range []string{"load", "set"} {
		virtual(t, how, func(t *testing.T) {
			m := storetest.NewMapBytes()
			fb := storetest.NewFaultyBytes(m.Another())
			fb.SetRemote()
			a := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", fb)}, Lifetime: policy.Lifetime{TTL: time.Hour},
				Load: func(context.Context, string) (string, error) { return "old", nil }})
			b := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}, Lifetime: policy.Lifetime{TTL: time.Hour}})
			if how == "load" {
				fb.Inject(storetest.Fail(errDown), storetest.Set, storetest.SetIf)
				wantGet(t, a, "k", "old")
			} else {
				fb.Inject(storetest.Fail(errDown))
				_ = a.Set(ctx, "k", "old")
			}
			time.Sleep(5 * time.Second)
			fb.Inject(storetest.Fail(errDown))
			if err := b.Delete(ctx, "k"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
			fb.Heal()
			time.Sleep(5 * time.Minute)
			if v, err := b.Get(ctx, "k"); err == nil {
				t.Errorf("b deleted it, and reads %q", v)
			}
		})
	}
}

// A failed Clear or Delete is remembered although another process gives longer lives.
func TestFailureIsRememberedForOthersLives(t *testing.T) {
	for _, how := range []string{"clear", "delete"} {
		virtual(t, how, func(t *testing.T) {
			m := storetest.NewMapBytes()
			fb := storetest.NewFaultyBytes(m.Another())
			fb.SetRemote()
			b := newCache(t, coordinator.Options[string, string]{Lifetime: policy.Lifetime{TTL: time.Hour}, Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}})
			a := newCache(t, coordinator.Options[string, string]{Lifetime: policy.Lifetime{TTL: time.Minute}, Tiers: []tier.Tier[string, string]{shared[string]("l3", fb)}})
			_ = b.Set(ctx, "k", "old")
			time.Sleep(time.Second)
			fb.Inject(storetest.Fail(errDown))
			if how == "clear" {
				_ = a.Clear(ctx)
			} else {
				_ = a.Delete(ctx, "k")
			}
			time.Sleep(2 * time.Minute)
			fb.Heal()
			time.Sleep(time.Minute)
			v1, err1 := a.Get(ctx, "k")
			v2, err2 := a.Get(ctx, "k")
			if err1 == nil || err2 == nil {
				t.Errorf("after %s: %q %v, then %q %v", how, v1, err1, v2, err2)
			}
		})
	}
}

// A loader that joins a flight without room does not wait for its own place.
func TestNestedJoinerHasRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := storetest.NewFaulty(storetest.NewMap[string, string]())
		fs.Inject(storetest.OnKey("b", storetest.Slow(100*time.Millisecond)), storetest.Get)
		var c *coordinator.Cache[string, string]
		c = newCache(t, coordinator.Options[string, string]{
			Tiers:  []tier.Tier[string, string]{{Name: "l1", Store: fs}},
			Limits: coordinator.Limits{Flights: 1},
			Load: func(ctx context.Context, k string) (string, error) {
				if k == "a" {
					time.Sleep(60 * time.Millisecond)
					return c.Get(ctx, "b")
				}
				return "v", nil
			},
		})
		go func() {
			time.Sleep(10 * time.Millisecond)
			_, _ = c.Get(ctx, "b") // fast path until 110, flight's search until 210, then full
		}()
		began := time.Now()
		v, err := c.Get(ctx, "a")
		took := time.Since(began)
		time.Sleep(time.Minute)
		if err != nil {
			t.Errorf("%q %v after %v", v, err, took)
		}
	})
}

// A Set that cannot be encoded fences the loads of other processes.
func TestUnencodableSetFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewMapBytes()
		fb := storetest.NewFaultyBytes(m)
		fb.SetRemote()
		fb.Inject(storetest.Slow(time.Millisecond)) // as any server
		a := newCache(t, coordinator.Options[string, any]{Tiers: []tier.Tier[string, any]{shared[any]("l3", fb)},
			Load: func(context.Context, string) (any, error) { return 2.0, nil }})
		b := newCache(t, coordinator.Options[string, any]{Tiers: []tier.Tier[string, any]{shared[any]("l3", m.Another())},
			Load: func(ctx context.Context, _ string) (any, error) { return 1.0, sleep(ctx, 5*time.Second) }})
		go b.Get(ctx, "k") // reads 1 now
		time.Sleep(time.Second)
		wantError(t, "Set", a.Set(ctx, "k", math.NaN()), tier.ErrUnencodable)
		time.Sleep(6 * time.Second)
		if v, err := a.Get(ctx, "k"); err == nil && v == 1.0 {
			t.Errorf("got %v, older than the Set", v)
		}
	})
}

// What is tried again does not take away what another process has written since.
func TestRepeatDoesNotBuryNewer(t *testing.T) {
	virtual(t, "dead load", func(t *testing.T) {
		m := storetest.NewMapBytes()
		fb := storetest.NewFaultyBytes(m.Another())
		fb.SetRemote()
		b := newCache(t, coordinator.Options[string, string]{Lifetime: policy.Lifetime{TTL: time.Hour}, Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}})
		a := newCache(t, coordinator.Options[string, string]{Lifetime: policy.Lifetime{TTL: time.Hour}, Tiers: []tier.Tier[string, string]{shared[string]("l3", fb)},
			LoadEntry: func(context.Context, string, *tier.Entry[string]) (coordinator.Loaded[string], error) {
				return coordinator.Loaded[string]{Value: "a", TTL: time.Second}, nil
			}})
		_ = b.SetWith(ctx, "k", coordinator.Loaded[string]{Value: "b1", TTL: time.Second})
		time.Sleep(1100 * time.Millisecond) // over, lingers: holds
		fb.Inject(storetest.Fail(errDown), storetest.Set, storetest.SetIf)
		wantGet(t, a, "k", "a")
		time.Sleep(time.Millisecond)
		_ = b.Set(ctx, "k", "b2")
		time.Sleep(2 * time.Second)
		fb.Heal()
		time.Sleep(time.Minute)
		if v, err := b.Get(ctx, "k"); err != nil {
			t.Errorf("b's newer Set is gone: %q %v", v, err)
		}
	})
	virtual(t, "reads fail", func(t *testing.T) {
		m := storetest.NewMapBytes()
		fb := storetest.NewFaultyBytes(m.Another())
		fb.SetRemote()
		b := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}})
		a := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", fb)}})
		fb.Inject(storetest.Fail(errDown))
		_ = a.Set(ctx, "k", "a1")
		time.Sleep(time.Millisecond)
		_ = b.Set(ctx, "k", "b2")
		fb.Heal(storetest.Set, storetest.SetIf) // reads still fail
		time.Sleep(20 * time.Second)
		if v, err := b.Get(ctx, "k"); err != nil {
			t.Errorf("b's newer Set is gone: %q %v", v, err)
		}
	})
}

// A write that is tried again gives way to what another process has written later, and not
// to an older one that was tried again just before: both come back when the tier does.
func TestRepeatDoesNotGiveWayToOlder(t *testing.T) {
	for _, op := range []string{"set", "delete", "load"} {
		for _, races := range []int{1, 2, 100} {
			virtual(t, fmt.Sprintf("%s, %d lost", op, races), func(t *testing.T) {
				aside, m := storetest.NewMapBytes(), storetest.NewMapBytes()
				other := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", aside)}})
				if err := other.Set(ctx, "k", "older"); err != nil {
					t.Fatal(err)
				}
				older, err := aside.Get(ctx, "k")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Millisecond)

				fb := storetest.NewFaultyBytes(m.Another())
				fb.SetRemote()
				fb.Inject(storetest.Fail(errDown))
				c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", fb)},
					Load: func(context.Context, string) (string, error) { return "newer", nil }})
				switch op {
				case "set":
					err = c.Set(ctx, "k", "newer")
				case "delete":
					err = c.Delete(ctx, "k")
				case "load":
					wantGet(t, c, "k", "newer")
				}
				if op != "load" && err == nil {
					t.Fatal("did not fail")
				}
				fb.Heal()
				fb.Inject(func(ctx context.Context, call storetest.Call, do func() error) error {
					if races--; races >= 0 {
						if err := m.Set(ctx, call.Keys[0].(string), older, time.Minute); err != nil {
							return err
						}
					}
					return do()
				}, storetest.SetIf)
				time.Sleep(20 * time.Second)
				if got := c.Stats().Tiers[0].Pending; got != 0 {
					t.Errorf("pending: got %d, want 0", got)
				}
				wantGet(t, c, "k", "newer")
			})
		}
	}
}

// Close cancels writes that outlast its context.
func TestCloseCancelsWrites(t *testing.T) {
	for _, how := range []string{"set", "clear"} {
		virtual(t, how, func(t *testing.T) {
			fs := storetest.NewFaulty(storetest.NewMap[string, string]())
			fs.SetRemote()
			fs.Inject(storetest.BlackHole(), storetest.Set, storetest.Clear)
			c, _ := coordinator.New(coordinator.Options[string, string]{Logger: quiet, Lifetime: policy.Lifetime{TTL: time.Minute},
				Tiers: []tier.Tier[string, string]{{Name: "l3", Store: fs, Timeout: time.Hour}}})
			long, stop := context.WithTimeout(ctx, 2*time.Hour)
			defer stop()
			done := make(chan error, 1)
			go func() {
				if how == "set" {
					done <- c.Set(long, "k", "v")
				} else {
					done <- c.Clear(long)
				}
			}()
			time.Sleep(time.Second)
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			wantError(t, "Close", c.Close(short), context.DeadlineExceeded)
			began := time.Now()
			err := <-done
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s was not cancelled by Close; ended %v later: %v", how, took, err)
			}
		})
	}
}

// A store that ends the goroutine does not end the tries.
func TestRepeatsGoOnAfterGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := storetest.NewFaulty(storetest.NewMap[string, string]())
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{{Name: "l1", Store: fs}}, Lifetime: policy.Lifetime{TTL: 24 * time.Hour}})
		fs.Inject(storetest.Fail(errDown))
		_ = c.Delete(ctx, "k")
		time.Sleep(10 * time.Minute) // many rounds
		fs.Inject(func(context.Context, storetest.Call, func() error) error { runtime.Goexit(); return nil }, storetest.Delete)
		time.Sleep(10 * time.Minute)
		fs.ForgetCalls()
		fs.Heal()
		time.Sleep(time.Hour)
		n := fs.Count(storetest.Delete)
		fs.Inject(storetest.Fail(errDown), storetest.Delete)
		_ = c.Delete(ctx, "other") // starts a worker
		fs.Heal()
		time.Sleep(10 * time.Minute)
		deletes := 0
		for _, call := range fs.Calls() {
			if call.Op == storetest.Delete && call.Keys[0] == "k" {
				deletes++
			}
		}
		if n == 0 || deletes == 0 {
			t.Errorf("tries of k within an hour after the worker's end: %d; within 10 min of a new worker: %d", n, deletes)
		}
	})
}

// What is written after a Clear that a tier cannot do is trusted at once.
func TestTrustAfterUnsupportedClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fb := storetest.NewFaultyBytes(storetest.NewMapBytes())
		fb.SetRemote()
		fb.Inject(storetest.Fail(errors.ErrUnsupported), storetest.Clear)
		var o origin
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", fb)}, Load: o.after(0, "old")})
		_ = c.Clear(ctx)
		time.Sleep(time.Millisecond)
		for range 100 {
			_, _ = c.Get(ctx, "k")
			time.Sleep(time.Millisecond)
		}
		if o.calls.Load() > 1 {
			t.Errorf("100 reads after Clear: %d loads", o.calls.Load())
		}
		d := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", fb)}})
		_ = d.Clear(ctx)
		time.Sleep(time.Millisecond)
		if err := d.Set(ctx, "x", "v"); err != nil {
			t.Fatal(err)
		}
		wantGet(t, d, "x", "v")
	})
}

// A loader under another cache's loader must not close that either.
func TestCloseFromNestedLoader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b *coordinator.Cache[string, string]
		b = newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")},
			Load: func(ctx context.Context, k string) (string, error) {
				short, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				return "v", a.Close(short)
			}})
		a = newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")},
			Load: func(ctx context.Context, k string) (string, error) { return b.Get(ctx, k) }})
		_, err := a.Get(ctx, "k")
		if !errors.Is(err, coordinator.ErrCycle) {
			t.Errorf("got %v", err)
		}
	})
}

// Loads that a loader asks for are bounded like others.
func TestNestedLoadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		var c *coordinator.Cache[string, string]
		c = newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")}, Limits: coordinator.Limits{Flights: 2},
			Load: func(ctx context.Context, k string) (string, error) {
				if k == "list" {
					many(1000, func(i int) { _, _ = c.Get(ctx, string(rune('a'+i))) })
					return "v", nil
				}
				defer o.enter()()
				return "v", sleep(ctx, time.Second)
			}})
		_, _ = c.Get(ctx, "list")
		if o.peak.Load() > 2 {
			t.Errorf("Flights 2: %d loads at once", o.peak.Load())
		}
	})
}

// exiting is a local store that ends the goroutine of whoever reads, when told to.
type exiting struct {
	*storetest.Map[string, int]
	exits atomic.Bool
}

func (e *exiting) Get(ctx context.Context, key string) (*tier.Entry[int], error) {
	if e.exits.Load() && key == "exits" {
		runtime.Goexit()
	}
	return e.Map.Get(ctx, key)
}

// A goroutine that ends in a look which had waited for its place gives it back (L5).
func TestGoexitInALookLeavesThePlace(t *testing.T) {
	virtual(t, "one place", func(t *testing.T) {
		l1 := &exiting{Map: storetest.NewMap[string, int]()}
		c := newCache(t, coordinator.Options[string, int]{
			Tiers:  []tier.Tier[string, int]{{Name: "l1", Store: l1}},
			Limits: coordinator.Limits{Flights: 1},
			Load:   func(ctx context.Context, _ string) (int, error) { return 1, sleep(ctx, time.Second) },
		})
		go func() { _, _ = c.Get(ctx, "slow") }()
		synctest.Wait()
		go func() { _, _ = c.Get(ctx, "exits") }()
		synctest.Wait() // it waits for the place
		l1.exits.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if s := c.Stats(); s.Flights != 0 || s.Keys != 0 {
			t.Errorf("at rest: %d flights, %d keys", s.Flights, s.Keys)
		}
		wantGet(t, c, "another", 1)
	})
}

// resting is the error of a part of a store that is not asked for a while.
type resting struct{ error }

func (resting) FailureKind() string       { return "resting" }
func (resting) Outage() bool              { return false }
func (resting) RetryAfter() time.Duration { return time.Second }

// C91: a part of a tier that rests is told of its writes soon after it is back, however long
// it was away, and of however many the others are told meanwhile.
func TestRepeatsToWhatRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewMapBytes()
		fb := storetest.NewFaultyBytes(m.Another())
		fb.SetRemote()
		a := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", fb)}, Lifetime: policy.Lifetime{TTL: time.Hour}})
		b := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}, Lifetime: policy.Lifetime{TTL: time.Hour}})
		const keys = 100
		for i := range keys {
			if err := b.Set(ctx, fmt.Sprint(i), "v"); err != nil {
				t.Fatal(err)
			}
		}
		fb.Inject(storetest.Fail(resting{errDown}))
		for i := range keys {
			_ = a.Delete(ctx, fmt.Sprint(i))
		}
		time.Sleep(5 * time.Minute)
		if got := a.Stats().Tiers[0].Breaker; got != "closed" {
			t.Errorf("the tier's breaker is %s, want closed: only a part of it rests", got)
		}
		fb.Heal()
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		for i := range keys {
			if v, err := b.Get(ctx, fmt.Sprint(i)); err == nil {
				t.Errorf("key %d: %q, which a has deleted", i, v)
			}
		}
	})
}
