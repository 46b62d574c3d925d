package coordinator

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

func clockedCache(t *testing.T, refresh policy.Strategy, loads *int) *Cache[string, int] {
	t.Helper()
	c, err := New(Options[string, int]{
		Tiers:    []tier.Tier[string, int]{{Name: "l1", Store: storetest.NewMap[string, int]()}},
		Lifetime: policy.Lifetime{TTL: time.Minute},
		Refresh:  refresh,
		Load:     func(context.Context, string) (int, error) { *loads++; return *loads, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (k *clock) runs() bool { return k.approx.Load() != clockStopped }

// The approximate time is used while an entry's end is far, and yet the entry is
// served to its last nanosecond and not one longer (T3).
func TestClockEndsEntriesExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loads int
		c := clockedCache(t, policy.Fixed{}, &loads)
		ctx := t.Context()
		get := func() int {
			v, err := c.Get(ctx, "key")
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		get()
		begin := time.Now()
		ran := 0
		for time.Since(begin) < time.Minute-50*time.Millisecond {
			for range clockWorth {
				if got := get(); got != 1 {
					t.Fatalf("after %v: got load %d, want the first", time.Since(begin), got)
				}
			}
			if c.clock.runs() {
				ran++
			}
			time.Sleep(7 * time.Millisecond)
		}
		if ran == 0 {
			t.Error("the clock never ran")
		}
		time.Sleep(time.Minute - 1 - time.Since(begin))
		if got := get(); got != 1 {
			t.Errorf("1 ns before the end: got load %d, want the first", got)
		}
		time.Sleep(time.Nanosecond)
		if got := get(); got != 2 {
			t.Errorf("at the end: got load %d, want the second", got)
		}
		if err := c.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// With ticks that come clockLag late an entry is still not served past its end.
func TestClockMayLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loads int
		c := clockedCache(t, policy.Fixed{}, &loads)
		_, _ = c.Get(t.Context(), "key")
		end := tier.Now().Add(time.Minute)
		for ago := time.Duration(0); ago <= clockLag; ago += clockLag / 50 {
			c.clock.approx.Store(int64(end.Add(-ago)))
			if e, _ := c.levels[0].store.Get(t.Context(), "key"); c.settings.Load().isCalm(e, c.clock.now()) {
				t.Errorf("at its end, by a clock that is %v late, the entry is calm", ago)
			}
		}
		c.clock.approx.Store(int64(end.Add(-clockLag - 1)))
		if e, _ := c.levels[0].store.Get(t.Context(), "key"); !c.settings.Load().isCalm(e, c.clock.now()) {
			t.Error("an entry with more than the lag to live is not calm")
		}
		c.clock.approx.Store(clockStopped)
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// A clock that nobody reads stops by itself, and Close leaves none.
func TestClockStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loads int
		c := clockedCache(t, policy.XFetch{}, &loads)
		ctx := t.Context()
		hits := func() {
			for range 3 * clockWorth {
				_, _ = c.Get(ctx, "key")
			}
		}
		hits()
		if !c.clock.runs() {
			t.Fatal("many hits in a row did not start the clock")
		}
		time.Sleep(2*clockTick + 1)
		synctest.Wait()
		if c.clock.runs() {
			t.Error("the clock runs on after the hits have ceased")
		}
		if c.clock.ticker.Stop() {
			t.Error("a timer is left")
		}

		for range 10 * clockWorth { // a hit now and then
			_, _ = c.Get(ctx, "key")
			time.Sleep(clockTick / (clockWorth - 2))
			if c.clock.runs() {
				t.Fatal("the clock was started for hits that come seldom")
			}
		}

		hits()
		if !c.clock.runs() {
			t.Fatal("the clock does not start again")
		}
		if err := c.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if c.clock.runs() || c.clock.ticker.Stop() {
			t.Error("Close left the clock running")
		}
	})
}

// What a policy promises to leave alone is not asked about; one that promises nothing
// is asked at each read.
func TestCalm(t *testing.T) {
	now := tier.Instant(0)
	entry := func(fresh, usable, took time.Duration, absent bool) *tier.Entry[int] {
		return tier.NewEntry(1, tier.Meta{FreshUntil: now.Add(fresh), UsableUntil: now.Add(usable), LoadTime: took, Absent: absent})
	}
	for _, c := range []struct {
		name   string
		policy policy.Strategy
		entry  *tier.Entry[int]
		want   bool
	}{
		{"fixed, far", policy.Fixed{}, entry(time.Minute, time.Minute, time.Second, false), true},
		{"fixed, near", policy.Fixed{}, entry(clockLag, time.Minute, 0, false), false},
		{"fixed, just not near", policy.Fixed{}, entry(clockLag+1, time.Minute, 0, false), true},
		{"swr, far", policy.StaleWhileRevalidate{}, entry(time.Minute, time.Hour, time.Second, false), true},
		{"swr, stale", policy.StaleWhileRevalidate{}, entry(-1, time.Hour, time.Second, false), false},
		{"usable ends first", policy.Fixed{}, entry(time.Hour, clockLag, 0, false), false},
		{"absent", policy.Fixed{}, entry(time.Hour, time.Hour, 0, true), false},
		{"xfetch, a draw could matter", policy.XFetch{}, entry(37*time.Second+clockLag, time.Hour, time.Second, false), false},
		{"xfetch, no draw matters", policy.XFetch{}, entry(37*time.Second+clockLag+1, time.Hour, time.Second, false), true},
		{"xfetch, beta 2", policy.XFetch{Beta: 2}, entry(74*time.Second+clockLag, time.Hour, time.Second, false), false},
		{"xfetch, an absurd beta", policy.XFetch{Beta: math.MaxFloat64}, entry(1<<62, 1<<62, 1, false), false},
		{"xfetch, an absurd load time", policy.XFetch{}, entry(1<<62, 1<<62, math.MaxInt64, false), false},
		{"xfetch, a negative load time", policy.XFetch{}, entry(time.Hour, time.Hour, -1, false), false},
		{"endless", policy.XFetch{}, entry(tier.Forever, tier.Forever, time.Second, false), true},
		{"of one's own", own{}, entry(tier.Forever, tier.Forever, 0, false), false},
		{"of one's own with a margin", ownCalm{}, entry(time.Second+clockLag, time.Hour, 0, false), false},
		{"of one's own beyond its margin", ownCalm{}, entry(time.Second+clockLag+1, time.Hour, 0, false), true},
	} {
		s := settings[string, int]{refresh: c.policy}.withCalm()
		if got := s.isCalm(c.entry, now); got != c.want {
			t.Errorf("%s: calm %v, want %v", c.name, got, c.want)
		}
	}
	// While the clock stands only what never ends is calm.
	s := settings[string, int]{refresh: policy.Fixed{}}.withCalm()
	if s.isCalm(entry(100*365*24*time.Hour, 100*365*24*time.Hour, 0, false), clockStopped) {
		t.Error("an entry that ends is calm while the clock stands")
	}
}

type own struct{}

func (own) Decide(policy.Reading) policy.Decision { return policy.Serve }

type ownCalm struct{ own }

func (ownCalm) Calm() (time.Duration, float64) { return time.Second, 0 }

// Where goroutines wait long for their turn the ticks do too; hits set the time right.
func TestHitsCorrectTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loads int
		c := clockedCache(t, policy.Fixed{}, &loads)
		for range 3 * clockWorth {
			_, _ = c.Get(t.Context(), "key")
		}
		if !c.clock.ticker.Stop() {
			t.Fatal("the clock does not run")
		}
		time.Sleep(time.Second)
		for range hitsPerCorrection * c.counts.outcomes.copies {
			_, _ = c.Get(t.Context(), "key")
		}
		if got := c.clock.now(); got != tier.Now() {
			t.Errorf("the clock lags by %v after many hits", tier.Now().Sub(got))
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// Where hits are too few to correct it the clock does not run on, and a tick that came
// late must have had the more of them.
func TestClockStopsWhereHitsAreFew(t *testing.T) {
	for _, c := range []struct {
		late time.Duration
		hits uint64
		want bool
	}{
		{clockTick, clockWorth, true},
		{clockTick, clockWorth - 1, false},
		{10 * clockTick, 10 * clockWorth, true},
		{10 * clockTick, 10*clockWorth - 1, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newClock(func() uint64 { return c.hits })
			k.approx.Store(int64(tier.Now()))
			k.ticked.Store(int64(tier.Now()))
			time.Sleep(c.late)
			if k.tick(); k.runs() != c.want {
				t.Errorf("a tick after %v with %d hits: runs %v, want %v", c.late, c.hits, !c.want, c.want)
			}
			k.stop()
		})
	}
}

// A tick that stop meets leaves no old time behind.
func TestClockStopsForEver(t *testing.T) {
	for range 2000 {
		k := newClock(func() uint64 { runtime.Gosched(); return math.MaxUint64 })
		k.approx.Store(int64(tier.Now()))
		ticked := make(chan struct{})
		go func() { k.tick(); close(ticked) }()
		runtime.Gosched()
		k.stop()
		<-ticked
		if k.runs() || k.ticker.Stop() {
			t.Fatal("something of the clock is left")
		}
	}
}
