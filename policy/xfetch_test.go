package policy_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/terracecache/terrace/policy"
)

// TestXFetchShare draws 100,000 times at each distance from the end: the share of
// reads that start a refresh is exp(-t/(beta·delta)).
func TestXFetchShare(t *testing.T) {
	const draws = 100_000
	for _, beta := range []float64{0, 0.5, 1, 2} {
		x := policy.XFetch{Beta: beta, Rand: rand.New(rand.NewPCG(1, 2)).Float64}
		scale := beta
		if beta == 0 {
			scale = 1
		}
		for _, delta := range []time.Duration{100 * time.Millisecond, 37 * time.Microsecond} {
			for _, left := range []float64{5, 3, 2, 1, 0.5, 0.01, 0} { // in units of delta
				freshFor := time.Duration(left * float64(delta))
				refreshes := 0
				for range draws {
					switch x.Decide(policy.Reading{FreshFor: freshFor, StaleFor: time.Hour, LoadTime: delta}) {
					case policy.Refresh:
						refreshes++
					case policy.Load:
						t.Fatal("a fresh entry, or a stale one in its window, makes the reader wait")
					}
				}
				want := math.Exp(-float64(freshFor) / (scale * float64(delta)))
				got := float64(refreshes) / draws
				// Five standard deviations of the draw.
				if tolerance := 5 * math.Sqrt(want*(1-want)/draws); math.Abs(got-want) > tolerance {
					t.Errorf("beta %v, delta %v, %v left: share %.4f, want %.4f ± %.4f", beta, delta, freshFor, got, want, tolerance)
				}
				if share := x.Share(freshFor, delta); math.Abs(share-want) > 1e-12 {
					t.Errorf("beta %v, delta %v, %v left: Share = %v, want %v", beta, delta, freshFor, share, want)
				}
			}
		}
	}
}

// TestXFetchTable is the table of the documentation: a load of 100 ms, beta 1.
func TestXFetchTable(t *testing.T) {
	for _, c := range []struct {
		left time.Duration
		want float64
	}{
		{500 * time.Millisecond, 0.0067},
		{300 * time.Millisecond, 0.0498},
		{200 * time.Millisecond, 0.1353},
		{100 * time.Millisecond, 0.3679},
		{50 * time.Millisecond, 0.6065},
		{0, 1},
	} {
		if got := (policy.XFetch{}).Share(c.left, 100*time.Millisecond); math.Abs(got-c.want) > 0.00005 {
			t.Errorf("%v before the end: share %.4f, want %.4f", c.left, got, c.want)
		}
	}
}

// TestC27Draws covers the edges of the draw: log(0), no load time, one without end.
func TestC27Draws(t *testing.T) {
	decide := func(u float64, freshFor, loadTime time.Duration) policy.Decision {
		return policy.XFetch{Rand: func() float64 { return u }}.Decide(policy.Reading{FreshFor: freshFor, StaleFor: freshFor, LoadTime: loadTime})
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		name               string
		u                  float64
		freshFor, loadTime time.Duration
		want               policy.Decision
	}{
		{"a draw of 0 is the latest", 0, 1, time.Hour, policy.Serve},
		{"the earliest draw", 1 - 0x1p-53, 36 * ms, ms, policy.Refresh},
		{"past the earliest draw", 1 - 0x1p-53, 37 * ms, ms, policy.Serve},
		{"a sub-second load", 1 - math.Exp(-2), 100 * ms, 60 * ms, policy.Refresh},
		{"exactly at the bound", 1 - math.Exp(-1), 999_999, ms, policy.Refresh},
		{"no load time", 1 - 0x1p-53, 1, 0, policy.Serve},
		{"a negative load time", 1 - 0x1p-53, 1, -ms, policy.Serve},
		{"a load of an hour", 1 - math.Exp(-1), 59 * time.Minute, time.Hour, policy.Refresh},
		{"an endless load", 0.5, time.Hour, policy.Forever, policy.Refresh},
		{"an endless life", 1 - 0x1p-53, policy.Forever, policy.Forever, policy.Serve},
		{"stale", 0, 0, 0, policy.Load},
		{"a generator that gives 1", 1, 30 * ms, ms, policy.Refresh},
		{"a generator that gives more", 7, 30 * ms, ms, policy.Refresh},
		{"a generator that gives less than 0", -7, 1, ms, policy.Serve},
		{"a generator that gives NaN", math.NaN(), 30 * ms, ms, policy.Refresh},
	} {
		if got := decide(c.u, c.freshFor, c.loadTime); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	// Whatever is put in, one of the three decisions comes out, and stale is not served.
	odd := []time.Duration{math.MinInt64, -1, 0, 1, ms, math.MaxInt64 - 1, math.MaxInt64}
	for _, freshFor := range odd {
		for _, staleFor := range odd {
			for _, loadTime := range odd {
				for _, beta := range []float64{0, 1e-300, 1, 1e300} {
					for _, u := range []float64{0, 0.5, 1 - 0x1p-53, math.NaN(), math.Inf(1), math.Inf(-1)} {
						x := policy.XFetch{Beta: beta, Rand: func() float64 { return u }}
						got := x.Decide(policy.Reading{FreshFor: freshFor, StaleFor: staleFor, LoadTime: loadTime})
						if got > policy.Load || freshFor <= 0 && got == policy.Serve || freshFor > 0 && got == policy.Load {
							t.Fatalf("fresh for %d, stale for %d, load time %d, beta %v, draw %v: %v", freshFor, staleFor, loadTime, beta, u, got)
						}
						if share := x.Share(freshFor, loadTime); !(share >= 0 && share <= 1) {
							t.Fatalf("Share(%d, %d) with beta %v = %v", freshFor, loadTime, beta, share)
						}
					}
				}
			}
		}
	}
}

// Far from the end no number is drawn: that is most reads.
func TestXFetchDrawsOnlyNearTheEnd(t *testing.T) {
	draws := 0
	x := policy.XFetch{Beta: 2, Rand: func() float64 { draws++; return 0.5 }}
	for _, c := range []struct {
		freshFor time.Duration
		want     int
	}{{time.Hour, 0}, {75 * time.Millisecond, 0}, {74 * time.Millisecond, 1}, {1, 1}, {0, 0}, {-1, 0}, {policy.Forever, 0}} {
		draws = 0
		x.Decide(policy.Reading{FreshFor: c.freshFor, StaleFor: c.freshFor, LoadTime: time.Millisecond})
		if draws != c.want {
			t.Errorf("%v before the end: %d draws, want %d", c.freshFor, draws, c.want)
		}
	}
}

func TestXFetchValidate(t *testing.T) {
	for _, beta := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if err := (policy.XFetch{Beta: beta}).Validate(policy.Lifetime{TTL: 1}); err == nil {
			t.Errorf("Beta %v: no error", beta)
		}
	}
	for _, beta := range []float64{0, 0.5, 1, 10} {
		if err := (policy.XFetch{Beta: beta}).Validate(policy.Lifetime{TTL: 1}); err != nil {
			t.Errorf("Beta %v: %v", beta, err)
		}
	}
}

func BenchmarkXFetch(b *testing.B) {
	for name, freshFor := range map[string]time.Duration{"far": time.Minute, "near": 100 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			r := policy.Reading{FreshFor: freshFor, StaleFor: freshFor, LoadTime: 50 * time.Millisecond}
			var s policy.Strategy = policy.XFetch{Beta: 1}
			b.ReportAllocs()
			for b.Loop() {
				s.Decide(r)
			}
		})
	}
}
