package coordinator_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// C18: past its hard expiry an entry is not served because a refresh is in flight.
func TestC18PastHardExpiry(t *testing.T) {
	for _, stale := range []time.Duration{0, time.Hour} {
		virtual(t, fmt.Sprintf("stale-if-error %v", stale), func(t *testing.T) {
			var o origin
			c := newCache(t, coordinator.Options[string, string]{
				Tiers:    chain(2),
				Lifetime: policy.Lifetime{TTL: time.Second, StaleWhileRevalidate: 2 * time.Second, StaleIfError: stale},
				Refresh:  policy.StaleWhileRevalidate{},
				Limits:   coordinator.Limits{LoadTimeout: 10 * time.Second},
				Load: func(ctx context.Context, _ string) (string, error) {
					defer o.enter()()
					<-ctx.Done() // hangs
					return "", ctx.Err()
				},
			})
			if err := c.Set(ctx, "k", "old"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			r, err := c.Lookup(ctx, "k")
			if err != nil || r.State != coordinator.Stale || !r.Refreshing || r.Age != 2*time.Second {
				t.Errorf("at 2 s: got %+v, %v", r, err)
			}
			time.Sleep(2 * time.Second)
			start := time.Now()
			r, err = c.Lookup(ctx, "k")
			if got := time.Since(start); got != 8*time.Second {
				t.Errorf("at 4 s: waited %v, want the refresh's limit", got)
			}
			if stale == 0 {
				wantError(t, "at 4 s", err, coordinator.ErrLoadTimeout)
			} else if err != nil || r.Value != "old" || r.State != coordinator.Stale {
				t.Errorf("at 4 s: got %+v, %v, want the stale value", r, err)
			}
			wantCalls(t, &o, 1)
		})
	}
}

// C19: what has no expiry is not about to expire.
func TestC19NoExpiry(t *testing.T) {
	for _, p := range []policy.Strategy{policy.Fixed{}, policy.StaleWhileRevalidate{}, policy.XFetch{Beta: 1e9}} {
		virtual(t, policy.NameOf(p), func(t *testing.T) {
			var o origin
			c := newCache(t, coordinator.Options[string, string]{
				Tiers:    chain(2),
				Lifetime: policy.Lifetime{TTL: policy.Forever, Jitter: 0.5, StaleWhileRevalidate: time.Second},
				Refresh:  p,
				Load:     o.after(time.Second, "v"),
			})
			for range 100 {
				r, err := c.Lookup(ctx, "k")
				if err != nil || r.State != coordinator.Fresh || r.Refreshing {
					t.Fatalf("got %+v, %v", r, err)
				}
				time.Sleep(1000 * time.Hour)
			}
			wantCalls(t, &o, 1)
		})
	}
}

// C27: delta is measured in less than seconds, survives the byte store, and no draw
// makes a duration of NaN or infinity.
func TestC27Delta(t *testing.T) {
	for _, take := range []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond, 900 * time.Millisecond, time.Hour} {
		virtual(t, take.String(), func(t *testing.T) {
			server := storetest.NewMapBytes()
			node := func(load coordinator.Loader[string, string]) *coordinator.Cache[string, string] {
				return newCache(t, coordinator.Options[string, string]{
					Tiers:    []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l2", server.Another())},
					Lifetime: policy.Lifetime{TTL: take + 10*time.Second},
					Refresh:  policy.XFetch{},
					Limits:   coordinator.Limits{LoadTimeout: 2 * time.Hour},
					Load:     load,
				})
			}
			var first, second origin
			a := node(first.after(take, "a"))
			wantGet(t, a, "k", "a")
			b := node(second.after(0, "b"))
			r, err := b.Lookup(ctx, "k")
			if err != nil || r.LoadTime != take || r.Tier != "l2" {
				t.Fatalf("on the second node: got %+v, %v", r, err)
			}
			defer func() { time.Sleep(take) }() // for a refresh under way
			early := 0
			for range 1999 { // 5 ms apart: 10 s less one
				if r, err := a.Lookup(ctx, "k"); err != nil || r.State != coordinator.Fresh {
					t.Fatalf("got %+v, %v", r, err)
				} else if r.Refreshing {
					early++
				}
				time.Sleep(5 * time.Millisecond)
			}
			if take == 0 && first.calls.Load() != 1 {
				t.Errorf("delta 0: %d loads, want no early refresh", first.calls.Load())
			}
			if take > 0 && early == 0 {
				t.Errorf("delta %v: no early refresh", take)
			}
		})
	}
	for _, u := range []float64{0, 1 - 0x1p-53, math.Nextafter(1, 0), 1, 2, -1, math.NaN(), math.Inf(1)} {
		virtual(t, fmt.Sprintf("rand %v", u), func(t *testing.T) {
			c := newCache(t, coordinator.Options[string, string]{
				Tiers:   chain(2),
				Refresh: policy.XFetch{Rand: func() float64 { return u }},
				Load:    (&origin{}).after(20*time.Second, "v"),
				Limits:  coordinator.Limits{LoadTimeout: time.Minute},
			})
			for range 100 {
				wantGet(t, c, "k", "v")
				time.Sleep(time.Second)
			}
		})
	}
}

// C30: a fill from below gives the life that is left, however often it is repeated.
func TestC30FillKeepsRemainingLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := storetest.NewMapBytes()
		ttl10 := func(name string, s tier.Store[string, string]) tier.Tier[string, string] {
			return tier.Tier[string, string]{Name: name, Store: s, TTL: 10 * time.Second}
		}
		type node struct {
			c  *coordinator.Cache[string, string]
			l1 *storetest.Map[string, string]
		}
		make1 := func() node {
			l1 := storetest.NewMap[string, string]()
			return node{newCache(t, coordinator.Options[string, string]{
				Lifetime: policy.Lifetime{TTL: time.Hour, StaleIfError: time.Hour},
				Tiers:    []tier.Tier[string, string]{ttl10("l1", l1), ttl10("l3", shared[string]("", server.Another()).Store)},
			}), l1}
		}
		a, b := make1(), make1()
		if err := a.c.Set(ctx, "k", "v"); err != nil {
			t.Fatal(err)
		}
		for s := range 10 { // ping-pong
			n := []node{a, b}[s%2]
			if err := n.l1.Delete(ctx, "k"); err != nil {
				t.Fatal(err)
			}
			r, err := n.c.Lookup(ctx, "k")
			if err != nil || r.Tier != "l3" || r.Age != time.Duration(s)*time.Second {
				t.Fatalf("at %d s: got %+v, %v", s, r, err)
			}
			time.Sleep(time.Second)
		}
		for range 10 {
			for _, n := range []node{a, b} {
				_, err := n.c.Get(ctx, "k")
				wantError(t, "after 10 s", err, coordinator.ErrMiss)
			}
			time.Sleep(time.Second)
		}
	})
}

// T1: the life left is the tier's own TTL where that is shorter, and then the tier
// below answers.
func TestTierTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tiers := chain(2)
		tiers[0].TTL = time.Second
		c := newCache(t, coordinator.Options[string, string]{Tiers: tiers, Lifetime: policy.Lifetime{TTL: 10 * time.Second}})
		if err := c.Set(ctx, "k", "v"); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			for j, want := range []string{"l2", "l1"} {
				if i == 0 && j == 0 {
					want = "l1" // Set has just put it there
				}
				r, err := c.Lookup(ctx, "k")
				if err != nil || r.Tier != want || r.State != coordinator.Fresh {
					t.Errorf("at %d s: got %+v, %v, want tier %s", i, r, err, want)
				}
			}
			time.Sleep(time.Second)
		}
		_, err := c.Get(ctx, "k")
		wantError(t, "at 10 s", err, coordinator.ErrMiss)
	})
}

// T2, T3: lives of every length; nothing lives for ever by accident.
func TestLives(t *testing.T) {
	for _, ttl := range []time.Duration{1, time.Microsecond, 500 * time.Millisecond, 30 * 24 * time.Hour, 400 * 24 * time.Hour, 69 * 365 * 24 * time.Hour, math.MaxInt64 - 1} {
		virtual(t, ttl.String(), func(t *testing.T) {
			var o origin
			c := newCache(t, coordinator.Options[string, string]{
				Tiers:    chain(3),
				Lifetime: policy.Lifetime{TTL: ttl},
				Load:     o.after(0, "v"),
			})
			wantGet(t, c, "k", "v")
			const century = 100 * 365 * 24 * time.Hour // virtual time does not reach much further
			time.Sleep(min(ttl-1, century))
			wantGet(t, c, "k", "v")
			wantCalls(t, &o, 1)
			if ttl > century {
				return
			}
			time.Sleep(time.Nanosecond)
			wantGet(t, c, "k", "v")
			wantCalls(t, &o, 2)
		})
	}
	for _, l := range []policy.Lifetime{
		{}, {TTL: -1}, {TTL: 1, Jitter: 1}, {TTL: 1, Jitter: -0.1}, {TTL: 1, Jitter: math.NaN()},
		{TTL: 1, StaleWhileRevalidate: -1}, {TTL: 1, StaleIfError: -1}, {TTL: 1, Absent: -1},
	} {
		_, err := coordinator.New(coordinator.Options[string, string]{Tiers: chain(1), Lifetime: l})
		if err == nil {
			t.Errorf("New took the lifetime %+v", l)
		}
	}
}

// A load that takes longer than the TTL still answers those who wait, and says that
// the value is stale.
func TestLoadLongerThanTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: chain(2), Lifetime: policy.Lifetime{TTL: time.Second}, Load: o.after(3*time.Second, "v"),
		})
		for range 2 {
			r, err := c.Lookup(ctx, "k")
			if err != nil || r.Value != "v" || r.State != coordinator.Stale {
				t.Errorf("got %+v, %v", r, err)
			}
		}
		wantCalls(t, &o, 2)
	})
}

func TestExpire(t *testing.T) {
	for _, tc := range []struct {
		name     string
		lifetime policy.Lifetime
		refresh  policy.Strategy
		want     string
	}{
		{"no window: like Delete", policy.Lifetime{TTL: time.Hour}, policy.Fixed{}, "error"},
		{"stale if error", policy.Lifetime{TTL: time.Hour, StaleIfError: time.Minute}, policy.Fixed{}, "old"},
		{"stale while revalidate", policy.Lifetime{TTL: time.Hour, StaleWhileRevalidate: time.Minute}, policy.StaleWhileRevalidate{}, "old"},
	} {
		virtual(t, tc.name, func(t *testing.T) {
			var o origin
			var up atomic.Bool
			c := newCache(t, coordinator.Options[string, string]{
				Tiers: chain(3), Lifetime: tc.lifetime, Refresh: tc.refresh,
				Backoff: policy.Backoff{Initial: time.Second},
				Load: func(context.Context, string) (string, error) {
					defer o.enter()()
					if up.Load() {
						return "new", nil
					}
					return "", io.ErrUnexpectedEOF
				},
			})
			if err := c.Set(ctx, "k", "old"); err != nil {
				t.Fatal(err)
			}
			if err := c.Expire(ctx, "k"); err != nil {
				t.Fatal(err)
			}
			r, err := c.Lookup(ctx, "k")
			if tc.want == "error" {
				wantError(t, "Lookup", err, io.ErrUnexpectedEOF)
			} else if err != nil || r.Value != tc.want || r.State != coordinator.Stale {
				t.Errorf("got %+v, %v", r, err)
			}
			synctest.Wait()
			wantCalls(t, &o, 1)
			up.Store(true)
			time.Sleep(time.Second)
			_, _ = c.Get(ctx, "k")
			synctest.Wait()
			wantGet(t, c, "k", "new")
			up.Store(false)
			if err := c.Expire(ctx, "k"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			_, err = c.Get(ctx, "k") // its window is over, whatever its TTL was
			wantError(t, "Get", err, io.ErrUnexpectedEOF)
		})
	}
}

// Jitter together with stale-while-revalidate is a plain combination: keys filled
// together are refreshed apart.
func TestJitterWithStaleWhileRevalidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loadsAt := make(map[int]int)
		var o origin
		start := time.Now()
		c := newCache(t, coordinator.Options[int, int]{
			Tiers:    []tier.Tier[int, int]{{Name: "l1", Store: storetest.NewMap[int, int]()}},
			Lifetime: policy.Lifetime{TTL: 100 * time.Second, Jitter: 0.1, StaleWhileRevalidate: 10 * time.Second},
			Refresh:  policy.StaleWhileRevalidate{},
			Limits:   coordinator.Limits{Background: 1000},
			Load:     func(_ context.Context, k int) (int, error) { defer o.enter()(); return k, nil },
		})
		for second := range 120 {
			before := o.calls.Load()
			for k := range 1000 {
				r, err := c.Lookup(ctx, k)
				if err != nil || second > 0 && r.Age > 111*time.Second {
					t.Fatalf("got %+v, %v", r, err)
				}
			}
			synctest.Wait()
			loadsAt[second] = int(o.calls.Load() - before)
			time.Sleep(time.Second)
		}
		busiest := 0
		for second, n := range loadsAt {
			if second > 0 {
				busiest = max(busiest, n)
			}
			if second > 0 && second < 90 && n > 0 {
				t.Errorf("%d loads at %d s", n, second)
			}
		}
		if busiest > 120 { // 1000 keys over 20 s
			t.Errorf("busiest second: %d loads of 1000", busiest)
		}
		_ = start
	})
}

// What was far from its end when it was found may be over when it has been written
// into a slow tier above; it is not served then (T3).
func TestSlowFillServesNothingDead(t *testing.T) {
	virtual(t, "a remote tier above", func(t *testing.T) {
		upper := hook(storetest.NewMap[string, int](), func(_ context.Context, op, key string) error {
			if op == "set" && key == "short" {
				time.Sleep(450 * time.Millisecond)
			}
			return nil
		})
		lower := storetest.NewMap[string, int]()
		c := newCache(t, coordinator.Options[string, int]{
			Tiers: []tier.Tier[string, int]{{Name: "l1", Store: upper}, {Name: "l2", Store: lower}},
			Load:  func(context.Context, string) (int, error) { return 2, nil },
		})
		for range 1000 { // so that the approximate clock runs
			wantGet(t, c, "hot", 2)
		}
		now := tier.Now()
		end := now.Add(300 * time.Millisecond)
		_ = lower.Set(ctx, "short", tier.NewEntry(1, tier.Meta{LoadedAt: now, FreshUntil: end, UsableUntil: end}), tier.Forever)
		wantGet(t, c, "short", 2)
	})
}

// recorder notes for how long it is told to keep entries. It counts as remote.
type recorder struct {
	tier.Store[string, int]
	ttl time.Duration
}

func (r *recorder) Set(ctx context.Context, key string, e *tier.Entry[int], ttl time.Duration) error {
	r.ttl = ttl
	return r.Store.Set(ctx, key, e, ttl)
}

// A Set that a lower tier is slow to take tells the upper one the life that is left
// by then (T1).
func TestSetTellsTheLifeThatIsLeft(t *testing.T) {
	virtual(t, "a slow tier below", func(t *testing.T) {
		upper := &recorder{Store: storetest.NewMap[string, int]()}
		lower := hook(storetest.NewMap[string, int](), func(context.Context, string, string) error {
			time.Sleep(400 * time.Millisecond)
			return nil
		})
		c := newCache(t, coordinator.Options[string, int]{
			Tiers: []tier.Tier[string, int]{{Name: "l1", Store: upper}, {Name: "l2", Store: lower}},
		})
		if err := c.Set(ctx, "key", 1); err != nil {
			t.Fatal(err)
		}
		if want := time.Minute - 400*time.Millisecond; upper.ttl != want {
			t.Errorf("kept for %v, want %v", upper.ttl, want)
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
