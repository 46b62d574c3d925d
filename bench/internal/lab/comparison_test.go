package lab_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/bench/internal/lab"
)

// published is the comparison as published: 100 requests a second for 20 s, TTL 2 s, an
// origin of 100 ms.
func published(arrivals string, seed uint64) lab.Comparison {
	return lab.Comparison{
		Strategies: lab.Strategies(lab.Lives{TTL: 2 * time.Second, Stale: time.Second}, 4),
		Arrivals:   lab.Arrivals{Kind: arrivals, Rate: 100, Length: 20 * time.Second, Seed: seed},
		Origin:     lab.OriginOptions{Latency: 100 * time.Millisecond, Capacity: 20},
		SlowAbove:  50 * time.Millisecond,
		Seed:       seed,
	}
}

// only leaves the named strategies.
func only(c *lab.Comparison, names ...string) {
	c.Strategies = slices.DeleteFunc(c.Strategies, func(s lab.Strategy) bool { return !slices.Contains(names, s.Name) })
}

// samples are the outcomes of a strategy, by seed.
type samples map[string][]lab.Outcome

// over runs the comparison in virtual time for so many seeds.
func over(t *testing.T, seeds int, arrivals string, names ...string) samples {
	t.Helper()
	all := make(samples)
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			c := published(arrivals, seed)
			only(&c, names...)
			r, err := c.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r.Late != 0 || r.Lasted != 20*time.Second {
				t.Errorf("seed %d: late by %v, lasted %v", seed, r.Late, r.Lasted)
			}
			for _, o := range r.Outcomes {
				all[o.Strategy.Name] = append(all[o.Strategy.Name], o)
			}
		})
	}
	return all
}

func calls(o lab.Outcome) float64 { return float64(o.Origin.Calls) }
func peak(o lab.Outcome) float64  { return float64(o.Origin.Peak) }
func slow(o lab.Outcome) float64  { return float64(o.Reads.Slow) }
func oldest(o lab.Outcome) float64 {
	return o.Reads.Oldest.Seconds()
}

// want checks that the figure is in the bounds at every seed, and its mean in others.
func (s samples) want(t *testing.T, name, what string, figure func(lab.Outcome) float64, least, most, leastMean, mostMean float64) {
	t.Helper()
	sum := 0.0
	for seed, o := range s[name] {
		v := figure(o)
		if v < least || v > most {
			t.Errorf("%s, seed %d: %s %v, want %v to %v", name, seed, what, v, least, most)
		}
		sum += v
	}
	mean := sum / float64(len(s[name]))
	t.Logf("%s: mean %s %.3f", name, what, mean)
	if !(mean >= leastMean && mean <= mostMean) {
		t.Errorf("%s: mean %s %.3f, want %v to %v", name, what, mean, leastMean, mostMean)
	}
}

// The published comparison, in virtual time, at every seed and in the mean of all.
//
// Means of XFetch follow from the formula: a read x before the end refreshes with the
// probability exp(-x/(beta·delta)), and rate·beta·delta·exp(-x/(beta·delta)) refreshes are
// expected before x is left. So the first comes, in the mean, beta·delta·(ln(rate·beta·delta)+0.577)
// before the end: a value lives 1.71 s with beta 1, and 1.29 s with beta 2. The first
// value was loaded 0.1 s before the start, so that is 11.2 and 15.1 calls in 20 s: the
// renewals in 20.1 s, less half of one for the life that the end cuts.
func TestComparisonOverSeeds(t *testing.T) {
	all := over(t, seeds, lab.Even, "naive", "single-flight", "swr", "xfetch-1", "xfetch-2")
	for name, outcomes := range all {
		if len(outcomes) != seeds {
			t.Errorf("%s: %d outcomes, want %d", name, len(outcomes), seeds)
		}
		for seed, o := range outcomes {
			if o.Reads.Requests != 2000 || o.Reads.Failed != 0 || o.Origin.Refused != 0 || len(o.Calls) != o.Origin.Calls {
				t.Errorf("%s, seed %d: %+v", name, seed, o)
			}
		}
	}
	all.want(t, "naive", "calls", calls, 95, 110, 97, 103)
	all.want(t, "naive", "peak", peak, 8, 14, 10, 12)
	all.want(t, "naive", "slow", slow, 95, 110, 97, 103)
	all.want(t, "naive", "oldest", oldest, 1.98, 2, 1.99, 2)
	all.want(t, "single-flight", "calls", calls, 8, 10, 9, 10)
	all.want(t, "single-flight", "peak", peak, 1, 1, 1, 1)
	all.want(t, "single-flight", "slow", slow, 40, 70, 54, 60)
	all.want(t, "single-flight", "oldest", oldest, 1.98, 2, 1.99, 2)
	all.want(t, "swr", "calls", calls, 8, 10, 9, 10)
	all.want(t, "swr", "peak", peak, 1, 1, 1, 1)
	all.want(t, "swr", "slow", slow, 0, 0, 0, 0)
	all.want(t, "swr", "oldest", oldest, 2.09, 2.12, 2.1, 2.11)
	all.want(t, "xfetch-1", "calls", calls, 10, 14, 10.9, 11.5)
	all.want(t, "xfetch-1", "peak", peak, 1, 1, 1, 1)
	all.want(t, "xfetch-1", "slow", slow, 0, 12, 0, 0.5)
	all.want(t, "xfetch-1", "oldest", oldest, 1.7, 2, 1.9, 2)
	all.want(t, "xfetch-2", "calls", calls, 13, 20, 14.6, 15.6)
	all.want(t, "xfetch-2", "peak", peak, 1, 1, 1, 1)
	all.want(t, "xfetch-2", "oldest", oldest, 1.3, 2, 1.55, 1.8)

	// Lives have the formula's mean, and its standard deviation of beta·delta·1.28.
	for name, scale := range map[string]float64{"xfetch-1": 0.1, "xfetch-2": 0.2} {
		var lives []float64
		for _, o := range all[name] {
			for i := 1; i < len(o.Calls); i++ {
				lives = append(lives, (o.Calls[i] - o.Calls[i-1]).Seconds())
			}
		}
		wantMean, wantDeviation := 2-scale*(math.Log(100*scale)+0.577), 1.28*scale
		mean, d := moments(lives)
		t.Logf("%s: lives of %.3f ± %.3f s", name, mean, d)
		if math.Abs(mean-wantMean) > 0.03 || math.Abs(d-wantDeviation) > 0.15*wantDeviation {
			t.Errorf("%s: lives of %.3f ± %.3f s, want %.3f ± %.3f", name, mean, d, wantMean, wantDeviation)
		}
	}
}

// moments returns the mean and the standard deviation.
func moments(values []float64) (mean, deviation float64) {
	sum, squares, n := 0.0, 0.0, float64(len(values))
	for _, v := range values {
		sum, squares = sum+v, squares+v*v
	}
	return sum / n, math.Sqrt(max(0, squares/n-sum/n*sum/n))
}

// Processes without a lease load one each, and with it one together; jitter changes a
// value's life.
func TestComparisonOfProcesses(t *testing.T) {
	all := over(t, 10, lab.Even, "swr-jitter", "processes-4", "lease-4")
	all.want(t, "swr-jitter", "calls", calls, 8, 11, 9, 10.5)
	all.want(t, "swr-jitter", "peak", peak, 1, 1, 1, 1)
	all.want(t, "swr-jitter", "slow", slow, 0, 0, 0, 0)
	all.want(t, "swr-jitter", "oldest", oldest, 1.95, 2.32, 2.15, 2.32)
	all.want(t, "processes-4", "calls", calls, 32, 40, 35, 40)
	all.want(t, "processes-4", "peak", peak, 4, 4, 4, 4)
	all.want(t, "lease-4", "calls", calls, 8, 10, 9, 10)
	all.want(t, "lease-4", "peak", peak, 1, 1, 1, 1)
	all.want(t, "lease-4", "slow", slow, 40, 110, 54, 100)
}

// Poisson arrivals are what the published figures are not of: bursts differ far more.
func TestComparisonOfPoissonArrivals(t *testing.T) {
	all := over(t, 20, lab.Poisson, "naive", "swr")
	all.want(t, "naive", "calls", calls, 60, 140, 92, 106)
	all.want(t, "naive", "peak", peak, 9, 20, 13, 17)
	all.want(t, "swr", "calls", calls, 8, 10, 9, 10)
	all.want(t, "swr", "slow", slow, 0, 0, 0, 0)
	var naive []float64
	for _, o := range all["naive"] {
		naive = append(naive, calls(o))
	}
	if _, d := moments(naive); d < 5 {
		t.Errorf("naive: standard deviation of calls %.1f, want some 9", d)
	}
}

// A comparison whose context ends tells what was done.
func TestComparisonIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5050*time.Millisecond)
		defer cancel()
		c := published(lab.Even, 1)
		var progress []time.Duration
		c.Progress = func(d time.Duration) { progress = append(progress, d.Truncate(time.Second)) }
		r, err := c.Run(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error: got %v, want the context's", err)
		}
		if r.Lasted < 4900*time.Millisecond || r.Lasted > 5*time.Second {
			t.Errorf("lasted %v, want 5 s less the time to warm", r.Lasted)
		}
		if len(r.Outcomes) != len(c.Strategies) {
			t.Fatalf("%d outcomes, want %d", len(r.Outcomes), len(c.Strategies))
		}
		for _, o := range r.Outcomes {
			if o.Reads.Failed != 0 || o.Reads.Requests < 450 || o.Reads.Requests > 500 {
				t.Errorf("%s: %d requests, %d failed", o.Strategy.Name, o.Reads.Requests, o.Reads.Failed)
			}
		}
		if !slices.Equal(progress, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}) {
			t.Errorf("progress: %v", progress)
		}
	})
}

// Above its capacity an origin refuses, and naive readers fail.
func TestComparisonAboveCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := published(lab.Even, 1)
		c.Origin.Capacity = 5
		r, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Outcomes {
			if o.Strategy.Name == "naive" {
				if o.Origin.Peak != 5 || o.Origin.Refused == 0 || o.Reads.Failed != o.Origin.Refused {
					t.Errorf("naive: peak %d, %d refused, %d failed", o.Origin.Peak, o.Origin.Refused, o.Reads.Failed)
				}
			} else if o.Reads.Failed != 0 {
				t.Errorf("%s: %d failed", o.Strategy.Name, o.Reads.Failed)
			}
		}
	})
}

func TestComparisonRefusesArrivals(t *testing.T) {
	for _, a := range []lab.Arrivals{
		{Kind: "bunched", Rate: 1, Length: 1},
		{Kind: lab.Even, Length: 1},
		{Kind: lab.Even, Rate: math.NaN(), Length: 1},
		{Kind: lab.Poisson, Rate: 1},
	} {
		if _, err := (lab.Comparison{Arrivals: a}).Run(t.Context()); err == nil {
			t.Errorf("%+v: no error", a)
		}
	}
}
