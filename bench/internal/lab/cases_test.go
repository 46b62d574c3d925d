package lab_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/bench/internal/lab"
)

// TestCases runs the published experiments. Where our figure is not the published one,
// the bounds say so: see docs/bench.md.
func TestCases(t *testing.T) {
	const ms = time.Millisecond
	for _, pause := range []time.Duration{50 * ms, 200 * ms} {
		for seed := range uint64(10) {
			for _, c := range lab.Cases(pause) {
				want, known := map[string]struct {
					least, most, peak, failed int
					longest                   time.Duration
				}{
					"no-protection":      {50, 50, 50, 0, 205 * ms},
					"one-load":           {1, 1, 1, 0, 205 * ms},
					"lock-only":          {2, 2, 1, 0, 1700 * ms},
					"early-without-lock": {24, 45, 20, 0, 1710 * ms},
					"early-with-lock":    {3, 7, 1, 0, 1700 * ms},
					"swr":                {2, 2, 1, 0, 1500 * ms},
					"swr-soft":           {3, 3, 1, 0, 1500 * ms},
					"absent":             {3, 3, 1, 0, 1700 * ms},
					"burst-naive":        {200, 200, 20, 180, 205 * ms},
					"burst-one-load":     {1, 1, 1, 0, 205 * ms},
					"burst-failing":      {1, 1, 1, 20, 205 * ms},
				}[c.Name]
				if !known {
					t.Errorf("no expectation for %s", c.Name)
				}
				synctest.Test(t, func(t *testing.T) {
					o, err := c.Run(t.Context(), seed)
					if err != nil {
						t.Fatalf("%s: %v", c.Name, err)
					}
					if n := o.Origin.Calls; n < want.least || n > want.most {
						t.Errorf("%s, seed %d, pause %v: %d calls, want %d to %d", c.Name, seed, pause, n, want.least, want.most)
					}
					if o.Origin.Peak != want.peak || o.Reads.Failed != want.failed || o.Wall > want.longest {
						t.Errorf("%s, seed %d, pause %v: peak %d, %d failed, took %v; want %+v", c.Name, seed, pause, o.Origin.Peak, o.Reads.Failed, o.Wall, want)
					}
				})
			}
		}
	}
}

func TestCaseIsInterrupted(t *testing.T) {
	for _, c := range lab.Cases(50 * time.Millisecond) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := c.Run(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got %v, want the context's error", c.Name, err)
			}
		})
	}
}

// Jittered TTLs are spread evenly over their band; without jitter they are a spike.
func TestSpread(t *testing.T) {
	const keys, ttl = 5000, time.Minute
	s, err := lab.NewSpread(t.Context(), keys, ttl, 0)
	if err != nil || s.Keys != keys || s.Least != ttl || s.Most != ttl || s.Tenths[5] != keys {
		t.Errorf("without jitter: %+v, %v", s, err)
	}
	s, err = lab.NewSpread(t.Context(), keys, ttl, 0.1)
	if err != nil || s.Keys != keys || s.Least < 54*time.Second || s.Most > 66*time.Second {
		t.Errorf("with jitter: %+v, %v", s, err)
	}
	for i, n := range s.Tenths {
		if n < 350 || n > 650 { // seven standard deviations
			t.Errorf("tenth %d holds %d of %d keys", i, n, keys)
		}
	}
	if _, err := lab.NewSpread(t.Context(), 1, ttl, 1); err == nil {
		t.Error("a jitter of 1: no error")
	}
}
