package coordinator_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
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

// Interleavings, faults and misuse, each of which has broken a rule once.

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

// So is a load that outlasts the tombstone of a Delete from before it.
func TestLoadOutlivesTheTombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", storetest.NewMapBytes())},
			Load:  o.after(time.Second, "v"),
		})
		_ = c.Delete(ctx, "k")
		time.Sleep(10500 * time.Millisecond)
		wantGet(t, c, "k", "v")
		if _, err := c.Peek(ctx, "k"); err != nil {
			t.Errorf("loaded value stored nowhere: %v", err)
		}
	})
}

func two(t *testing.T, la, lb coordinator.Loader[string, string], life policy.Lifetime) (a, b *coordinator.Cache[string, string], m *storetest.MapBytes) {
	m = storetest.NewMapBytes()
	a = newCache(t, coordinator.Options[string, string]{Lifetime: life, Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}, Load: la})
	b = newCache(t, coordinator.Options[string, string]{Lifetime: life, Tiers: []tier.Tier[string, string]{shared[string]("l3", m.Another())}, Load: lb})
	return
}

// An absence that is not cached does not shorten the tombstone that keeps another process from storing what it began to load before the Delete.
func TestAbsenceKeepsTheTombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		a, b, _ := two(t, func(context.Context, string) (string, error) { return "", tier.ErrAbsent }, o.after(5*time.Second, "old"), policy.Lifetime{})
		go b.Get(ctx, "k") // reads the old row now
		time.Sleep(time.Second)
		if err := a.Delete(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		_, err := a.Get(ctx, "k")
		wantError(t, "get", err, tier.ErrAbsent)
		time.Sleep(5 * time.Second)
		v, err := a.Get(ctx, "k")
		if err == nil {
			t.Errorf("the deleted value is back: %q", v)
		}
	})
}

// A Set whose life is over before another process has loaded still keeps that from storing.
func TestShortSetFencesLongLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		a, b, _ := two(t, func(context.Context, string) (string, error) { return "new", nil }, o.after(5*time.Second, "old"), policy.Lifetime{})
		go b.Get(ctx, "k")
		time.Sleep(time.Second)
		if err := a.SetWith(ctx, "k", coordinator.Loaded[string]{Value: "new", TTL: time.Second}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if v, _ := a.Get(ctx, "k"); v != "new" {
			t.Errorf("got %q older than the Set", v)
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

// A Set that is too large for a tier overtakes an older one that waits to be tried again there.
func TestTooLargeOvertakesPendingWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fb := storetest.NewFaultyBytes(storetest.NewMapBytes())
		fb.SetRemote()
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{{Name: "l1", Store: storetest.NewMap[string, string](), TTL: time.Second}, shared[string]("l3", fb)},
			Lifetime: policy.Lifetime{TTL: time.Minute},
			Load:     func(context.Context, string) (string, error) { return "v3", nil },
		})
		fb.Inject(storetest.Fail(errors.New("down")))
		_ = c.Set(ctx, "k", "v1")
		fb.Heal()
		fb.Inject(storetest.Fail(tier.ErrTooLarge), storetest.Set, storetest.SetIf)
		_ = c.Set(ctx, "k", "v2-huge")
		fb.Heal()
		time.Sleep(2 * time.Second)
		if v, _ := c.Get(ctx, "k"); v == "v1" {
			t.Errorf("got %q, older than the last Set", v)
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

// Absences have no stale windows, expired ones neither.
func TestExpiredAbsenceIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		boom := errors.New("boom")
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{memory[string]("l1")},
			Lifetime: policy.Lifetime{TTL: time.Minute, Absent: time.Minute, StaleIfError: time.Hour},
			Load: func(context.Context, string) (string, error) {
				if fail {
					return "", boom
				}
				return "", tier.ErrAbsent
			},
		})
		_, err := c.Get(ctx, "k")
		wantError(t, "first", err, tier.ErrAbsent)
		_ = c.Expire(ctx, "k")
		fail = true
		time.Sleep(time.Second)
		r, err := c.Lookup(ctx, "k")
		if err == nil {
			t.Errorf("expired absence served: state %v, stats %+v", r.State, c.Stats())
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

// Who comes while a short-lived answer is being stored is not served past its life (T3).
func TestJoinerOfSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fb := storetest.NewFaultyBytes(storetest.NewMapBytes())
		fb.SetRemote()
		fb.Inject(storetest.Slow(400*time.Millisecond), storetest.Set, storetest.SetIf)
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", fb)},
			Lifetime: policy.Lifetime{TTL: 100 * time.Millisecond},
			Load:     o.after(0, "v"),
		})
		go c.Get(ctx, "k")
		time.Sleep(350 * time.Millisecond)
		r, err := c.Lookup(ctx, "k")
		if err == nil && r.Age > 100*time.Millisecond {
			t.Errorf("joiner began at 350ms, got age %v state %v; TTL 100ms, no stale window", r.Age, r.State)
		}
	})
}

// Of two copies of an entry the one that lives longer is held in reserve.
func TestReserveIsTheCopyThatLivesLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{{Name: "l1", Store: storetest.NewMap[string, string](), TTL: 30 * time.Second}, shared[string]("l3", storetest.NewMapBytes())},
			Lifetime: policy.Lifetime{TTL: 20 * time.Second, StaleIfError: time.Hour},
			Load: func(ctx context.Context, _ string) (string, error) {
				if fail {
					_ = sleep(ctx, time.Second)
					return "", errors.New("boom")
				}
				return "v", nil
			},
		})
		wantGet(t, c, "k", "v")
		fail = true
		time.Sleep(29500 * time.Millisecond)
		v, err := c.Get(ctx, "k")
		if err != nil {
			t.Errorf("l3 has a stale value for an hour, yet: %q %v", v, err)
		}
	})
}

// A failed Delete is remembered for as long as another process lets its entries live.
func TestDeleteIsRememberedForOthersLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewMapBytes()
		fb := storetest.NewFaultyBytes(m.Another())
		fb.SetRemote()
		b := newCache(t, coordinator.Options[string, string]{Lifetime: policy.Lifetime{TTL: time.Hour}, Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}})
		a := newCache(t, coordinator.Options[string, string]{Lifetime: policy.Lifetime{TTL: time.Minute},
			Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", fb)}})
		_ = b.Set(ctx, "k", "old")
		wantGet(t, a, "k", "old") // a has seen that it lives for an hour
		fb.Inject(storetest.Fail(errors.New("down")))
		if err := a.Delete(ctx, "k"); err == nil {
			t.Error("Delete did not fail")
		}
		time.Sleep(2 * time.Minute)
		fb.Heal()
		time.Sleep(time.Minute)
		if v, err := a.Get(ctx, "k"); err == nil {
			t.Errorf("deleted value back: %q", v)
		}
	})
}

// Close waits for a Set under way.
func TestCloseWaitsForSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := storetest.NewFaulty(storetest.NewMap[string, string]())
		fs.SetRemote()
		fs.Inject(storetest.Slow(400*time.Millisecond), storetest.Set)
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1"), {Name: "l2", Store: fs}}})
		done := make(chan error, 1)
		go func() { done <- c.Set(ctx, "k", "v") }()
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		_ = c.Close(ctx)
		t.Logf("Close took %v", time.Since(began))
		if time.Since(began) < 300*time.Millisecond {
			t.Errorf("Close did not wait for the Set under way")
		}
		if err := <-done; err != nil {
			t.Errorf("Set: %v", err)
		}
	})
}

// An idle cache has nothing to cancel.
func TestCloseIdleWithEndedContext(t *testing.T) {
	bad := 0
	for range 200 {
		c, _ := coordinator.New(coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")}, Lifetime: policy.Lifetime{TTL: time.Minute}})
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := c.Close(ended); err != nil {
			bad++
		}
	}
	if bad > 0 {
		t.Errorf("%d of 200 idle Closes claim to have cancelled something", bad)
	}
}

// Keys are not logged, not by way of an error either.
func TestKeysAreNotLogged(t *testing.T) {
	var buf bytes.Buffer
	var c *coordinator.Cache[string, string]
	c = newCache(t, coordinator.Options[string, string]{
		Tiers:  []tier.Tier[string, string]{memory[string]("l1")},
		Logger: slog.New(slog.NewTextHandler(&buf, nil)),
		Load:   func(ctx context.Context, k string) (string, error) { return c.Get(ctx, k) },
	})
	_, _ = c.Get(ctx, "session-SECRET")
	if strings.Contains(buf.String(), "SECRET") {
		t.Errorf("log: %s", buf.String())
	}
}

// readingHandler uses the cache from within the handler of a line of its log.
type readingHandler struct {
	slog.Handler
	f func()
}

func (h readingHandler) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "too many failed") {
		h.f()
	}
	return nil
}

// The log handler is called without a lock of the cache.
func TestLogHandlerMayUseTheCache(t *testing.T) {
	fs := storetest.NewFaulty(storetest.NewMap[string, string]())
	fs.SetRemote()
	fs.Inject(storetest.Fail(errors.New("down")))
	var c *coordinator.Cache[string, string]
	blocked := make(chan bool, 10)
	c, _ = coordinator.New(coordinator.Options[string, string]{
		Tiers:    []tier.Tier[string, string]{memory[string]("l1"), {Name: "l2", Store: fs}},
		Lifetime: policy.Lifetime{TTL: time.Minute},
		Limits:   coordinator.Limits{Recovery: 1},
		Logger: slog.New(readingHandler{quiet.Handler(), func() {
			x, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, err := c.Get(x, "unrelated")
			_ = err
			blocked <- time.Since(began) > 250*time.Millisecond
		}}),
	})
	_ = c.Set(ctx, "a", "1")
	_ = c.Set(ctx, "b", "1")
	if <-blocked {
		t.Errorf("a Get of an unrelated key hangs while the log handler runs")
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

type nilErr struct{ s string }

func (e *nilErr) Error() string { return e.s }

// A store that returns an error which panics does not take the process down.
func TestTypedNilErrorInBackground(t *testing.T) {
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
	time.Sleep(1500 * time.Millisecond)
}

// A Set that is too large for a shared tier fences the loads of other processes there.
func TestTooLargeSetFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewMapBytes()
		fb := storetest.NewFaultyBytes(m.Another())
		fb.SetRemote()
		fb.Inject(func(ctx context.Context, call storetest.Call, do func() error) error {
			_ = m.Delete(ctx, call.Keys[0].(string))
			return tier.ErrTooLarge
		}, storetest.SetIf)
		a := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{{Name: "l1", Store: storetest.NewMap[string, string](), TTL: time.Second}, shared[string]("l3", fb)},
			Load: func(context.Context, string) (string, error) { return "new", nil }})
		var o origin
		b := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", m.Another())}, Load: o.after(3*time.Second, "old")})
		go b.Get(ctx, "k")
		time.Sleep(time.Second)
		wantError(t, "Set", a.Set(ctx, "k", "new"), tier.ErrTooLarge)
		time.Sleep(3 * time.Second)
		if v, _ := a.Get(ctx, "k"); v != "new" {
			t.Errorf("Set new, got %q", v)
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

// A failed Clear does not turn the hit path off for longer than what was there before can live.
func TestHitPathComesBackAfterFailedClear(t *testing.T) {
	top := &badClear{Map: storetest.NewMap[string, string]()}
	c := newCache(t, coordinator.Options[string, string]{
		Tiers:    []tier.Tier[string, string]{{Name: "l1", Store: top}},
		Lifetime: policy.Lifetime{TTL: 50 * time.Millisecond},
	})
	if err := c.Clear(ctx); err == nil {
		t.Fatal("Clear did not fail")
	}
	eventually(t, "a hit allocates nothing", func() bool {
		if err := c.Set(ctx, "k", "v"); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Get(ctx, "k")
		return testing.AllocsPerRun(10, func() { _, _ = c.Get(ctx, "k") }) == 0
	})
}

type badClear struct{ *storetest.Map[string, string] }

func (*badClear) Clear(context.Context) error { return errDown }

// What is withdrawn leaves a tombstone, as another process may have left one there.
func TestWithdrawKeepsTombstones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m2, m3 := storetest.NewMapBytes(), storetest.NewMapBytes()
		hold := make(chan struct{})
		mk := func(l2 tier.Bytes, load coordinator.Loader[string, string]) *coordinator.Cache[string, string] {
			return newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l2", l2), shared[string]("l3", m3.Another())}, Load: load})
		}
		f2 := storetest.NewFaultyBytes(m2.Another())
		f2.SetRemote()
		f2.Inject(func(ctx context.Context, _ storetest.Call, do func() error) error { <-hold; return do() }, storetest.SetIf)
		a := mk(f2, func(context.Context, string) (string, error) { return "a-old", nil })
		b := mk(m2.Another(), func(context.Context, string) (string, error) { return "new", nil })
		d2 := storetest.NewFaultyBytes(m2.Another())
		d2.SetRemote()
		d2.Inject(storetest.Slow(300*time.Millisecond), storetest.SetIf)
		d := mk(d2, func(ctx context.Context, _ string) (string, error) { return "d-old", sleep(ctx, 3*time.Second) })
		go d.Get(ctx, "k")
		time.Sleep(10 * time.Millisecond)
		go a.Get(ctx, "k")
		time.Sleep(100 * time.Millisecond)
		if err := b.Delete(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		close(hold)
		time.Sleep(3 * time.Second) // d stored in l3 at ~3.0s, l2 refused at 3.3
		if v, _ := b.Get(ctx, "k"); v != "new" {
			t.Errorf("after Delete: %q", v)
		}
	})
}

// A fenced flight, which stores nothing, does not wait behind the writes that fenced it.
func TestFencedFlightDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fb := storetest.NewFaultyBytes(storetest.NewMapBytes())
		fb.SetRemote()
		fb.Inject(storetest.BlackHole(), storetest.Set, storetest.SetIf)
		var o origin
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", fb)}, Load: o.after(50*time.Millisecond, "v")})
		var took time.Duration
		var wg sync.WaitGroup
		wg.Add(1)
		go func() { defer wg.Done(); b := time.Now(); c.Get(ctx, "k"); took = time.Since(b) }()
		time.Sleep(10 * time.Millisecond)
		many(20, func(int) { c.Set(ctx, "k", "s") })
		wg.Wait()
		t.Logf("Get took %v", took)
		if took > time.Second {
			t.Errorf("a fenced flight, which stores nothing, kept its caller %v (load 50ms)", took)
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

// A Clear that fails in a tier does not forget the deletions that the tier lacks.
func TestFailedClearKeepsPendingDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewMapBytes()
		fb := storetest.NewFaultyBytes(m.Another())
		fb.SetRemote()
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", fb)}})
		b := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}})
		_ = c.Set(ctx, "k", "v1")
		fb.Inject(storetest.Fail(errors.New("down")), storetest.Set, storetest.SetIf, storetest.Clear)
		_ = c.Delete(ctx, "k") // pending for l3
		if err := c.Clear(ctx); err == nil {
			t.Error("Clear did not fail")
		}
		fb.Heal()
		time.Sleep(30 * time.Second)
		if v, err := b.Get(ctx, "k"); err == nil {
			t.Errorf("the Delete was promised to be tried again; a failed Clear dropped it; other process still reads %q", v)
		}
	})
}

// A Set that timed out and reaches the server late does not overwrite a later one.
func TestLateSetDoesNotOverwrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lateBytes{MapBytes: storetest.NewMapBytes()}
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{{Name: "l1", Store: storetest.NewMap[string, string](), TTL: time.Second}, shared[string]("l3", b)},
		})
		b.late.Store(true)
		wantError(t, "Set", c.Set(ctx, "k", "v1"), context.DeadlineExceeded)
		if err := c.Set(ctx, "k", "v2"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		wantGet(t, c, "k", "v2")
		if b.late.Load() {
			t.Error("nothing was late")
		}
	})
}

// lateBytes lets one conditional write reach the server two seconds late.
type lateBytes struct {
	*storetest.MapBytes
	late atomic.Bool
}

func (b *lateBytes) SetIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (bool, error) {
	if !b.late.CompareAndSwap(true, false) {
		return b.MapBytes.SetIf(ctx, key, value, ttl, head)
	}
	value, head = bytes.Clone(value), bytes.Clone(head)
	time.AfterFunc(2*time.Second, func() { _, _ = b.MapBytes.SetIf(context.Background(), key, value, ttl, head) })
	<-ctx.Done()
	return false, ctx.Err()
}

// Failures of keys at rest are forgotten.
func TestCooldownsAreForgottenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		c := newCache(t, coordinator.Options[int, int]{Tiers: []tier.Tier[int, int]{{Name: "l1", Store: storetest.NewMap[int, int]()}},
			Lifetime: policy.Lifetime{TTL: time.Second, StaleIfError: time.Minute},
			Load: func(context.Context, int) (int, error) {
				if fail {
					return 0, errors.New("x")
				}
				return 1, nil
			}})
		for i := range 70000 {
			c.Get(ctx, i)
		}
		time.Sleep(2 * time.Second)
		fail = true
		for i := range 70000 {
			c.Get(ctx, i)
		}
		fail = false
		time.Sleep(24 * time.Hour)
		for i := range 1000 {
			c.Get(ctx, -i)
		}
		if n := coordinator.CooldownsOf(c); n > 0 {
			t.Errorf("a day later %d keys at rest are remembered", n)
		}
	})
}

// A fill that takes longer than the entry lives does not have it served past its life (T3).
func TestSlowFillDoesNotServeTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f2 := storetest.NewFaulty(storetest.NewMap[string, string]())
		f2.SetRemote()
		f3 := storetest.NewFaulty(storetest.NewMap[string, string]())
		f3.SetRemote()
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{{Name: "l1", Store: storetest.NewMap[string, string](), TTL: time.Millisecond}, {Name: "l2", Store: f2, TTL: time.Millisecond}, {Name: "l3", Store: f3}},
			Lifetime: policy.Lifetime{TTL: 10 * time.Second}})
		_ = c.Set(ctx, "k", "v")
		time.Sleep(9900 * time.Millisecond)
		f2.Inject(storetest.BlackHole(), storetest.Set)
		r, err := c.Lookup(ctx, "k")
		if err == nil && r.Age > 10*time.Second {
			t.Errorf("served at age %v, TTL 10s", r.Age)
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

// Keys that a tier refuses for ever do not keep it from being told of others.
func TestRefusedKeysDoNotStarveOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := storetest.NewFaulty(storetest.NewMap[int, string]())
		fs.SetRemote()
		c := newCache(t, coordinator.Options[int, string]{Lifetime: policy.Lifetime{TTL: time.Hour}, Tiers: []tier.Tier[int, string]{{Name: "l1", Store: storetest.NewMap[int, string]()}, {Name: "l2", Store: fs}}})
		fs.Inject(storetest.Fail(errors.New("down")))
		for i := range 2000 {
			_ = c.Set(ctx, i, "v")
		}
		fs.Heal()
		// half of the keys are refused by the server for ever
		fs.Inject(func(_ context.Context, call storetest.Call, do func() error) error {
			if call.Keys[0].(int)%2 == 0 {
				return errors.New("WRONGTYPE")
			}
			return do()
		}, storetest.Set, storetest.Delete)
		time.Sleep(2 * time.Minute)
		s := c.Stats().Tiers[1]
		t.Logf("2 minutes after recovery: repeated %d of 1000 good, pending %d", s.Repeated, s.Pending)
		if s.Repeated < 1000 {
			t.Errorf("good keys starve")
		}
	})
}

// A loader that returns at its time limit and one that does not end in the same error.
func TestTimeoutErrorIsAlwaysTheSame(t *testing.T) {
	c := newCache(t, coordinator.Options[int, string]{Tiers: []tier.Tier[int, string]{{Name: "l1", Store: storetest.NewMap[int, string]()}}, Limits: coordinator.Limits{LoadTimeout: time.Millisecond},
		Load: func(ctx context.Context, _ int) (string, error) {
			for ctx.Err() == nil {
			}
			return "", ctx.Err()
		}})
	other := 0
	for i := range 1500 {
		if _, err := c.Get(ctx, i); !errors.Is(err, coordinator.ErrLoadTimeout) {
			other++
		}
	}
	if other > 0 {
		t.Errorf("%d of 1500 timeouts are not ErrLoadTimeout; LoaderTimeouts %d", other, c.Stats().LoaderTimeouts)
	}
}

// A failure cools one key down and no other.
func TestCooldownIsOfOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := map[string]int{}
		fail := false
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")},
			Lifetime: policy.Lifetime{TTL: time.Second, StaleIfError: time.Hour},
			Load: func(_ context.Context, k string) (string, error) {
				n[k]++
				if fail && k == "a" {
					return "", errors.New("x")
				}
				return "v", nil
			}})
		c.Get(ctx, "a")
		c.Get(ctx, "b")
		time.Sleep(2 * time.Second)
		fail = true
		c.Get(ctx, "a")
		r, err := c.Lookup(ctx, "b")
		if n["b"] != 2 {
			t.Errorf("b was not loaded because a failed: loads %v, %v %v (now %d)", n, r.State, err, tier.Now())
		}
	})
}

func shift(t *testing.T, m *storetest.MapBytes, key string, d, ttl time.Duration) {
	raw, _ := m.Get(ctx, key)
	binary.BigEndian.PutUint64(raw[8:], binary.BigEndian.Uint64(raw[8:])+uint64(d))
	tab := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, tab, []byte(key))
	sum = crc32.Update(sum, tab, raw[:20])
	sum = crc32.Update(sum, tab, raw[24:])
	binary.BigEndian.PutUint32(raw[20:], sum)
	_ = m.Set(ctx, key, raw, ttl)
}

// An entry of a process whose clock is far ahead is not born again at each reading.
func TestClockAheadDoesNotKeepFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewMapBytes()
		var n atomic.Int64
		life := policy.Lifetime{TTL: time.Minute, StaleWhileRevalidate: time.Hour}
		b := newCache(t, coordinator.Options[string, string]{Lifetime: life, Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}})
		a := newCache(t, coordinator.Options[string, string]{Lifetime: life, Refresh: policy.StaleWhileRevalidate{}, Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", m.Another())},
			Load: func(context.Context, string) (string, error) { n.Add(1); return "new", nil }})
		_ = b.Set(ctx, "k", "old")
		shift(t, m, "k", 30*time.Minute, 61*time.Minute)
		for range 25 * 60 {
			a.Get(ctx, "k")
			time.Sleep(time.Second)
		}
		r, _ := a.Lookup(ctx, "k")
		if n.Load() == 0 {
			t.Errorf("25 min after a 1 min TTL: %q state %v age %v, loads %d", r.Value, r.State, r.Age, n.Load())
		}
	})
}

// The failure of a load that a Set has overtaken cools nothing down.
func TestOvertakenFailureDoesNotCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{memory[string]("l1")},
			Lifetime: policy.Lifetime{TTL: 100 * time.Millisecond, StaleIfError: time.Hour},
			Backoff:  policy.Backoff{Initial: 10 * time.Second},
			Load: func(ctx context.Context, _ string) (string, error) {
				if n.Add(1) == 2 {
					_ = sleep(ctx, time.Second)
					return "", errors.New("x")
				}
				return "fresh", nil
			}})
		c.Get(ctx, "k")
		time.Sleep(200 * time.Millisecond)
		go c.Get(ctx, "k") // load 2, fails at 1.2 s
		time.Sleep(500 * time.Millisecond)
		_ = c.Set(ctx, "k", "set")
		time.Sleep(time.Second)
		r, _ := c.Lookup(ctx, "k")
		if n.Load() != 3 {
			t.Errorf("the Set cleared the cool-down, the overtaken load set it again: loads %d, %q %v", n.Load(), r.Value, r.State)
		}
	})
}
