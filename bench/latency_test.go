package main

import (
	"math"
	"testing"
	"time"
)

func TestLatencyIsWithinOnePerMille(t *testing.T) {
	l := newLatency()
	for i := range 100_000 {
		l.add(time.Duration(i+1) * time.Microsecond)
	}
	for q, want := range map[float64]float64{0.5: 0.05, 0.99: 0.099, 0.999: 0.0999} {
		if got := l.quantile(q).Seconds(); math.Abs(got/want-1) > 0.0011 {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
}

// A distribution has no percentile beyond which there are fewer than ten.
func TestDistributionGoesAsFarAsThereAreEnough(t *testing.T) {
	for _, c := range []struct {
		n           int
		first, last float64 // zero: none
	}{{0, 0, 0}, {19, 0, 0}, {20, 50, 50}, {100, 10, 90}, {999, 2, 98.5}, {1000, 1, 99}, {5000, 1, 99.8}, {99_999, 1, 99.98}, {100_000, 1, 99.99}} {
		l := newLatency()
		for i := range c.n {
			l.add(time.Duration(i+1) * time.Millisecond)
		}
		d := l.distribution()
		if c.first == 0 {
			if len(d) != 0 {
				t.Errorf("of %d: got %v, want none", c.n, d)
			}
			continue
		}
		if len(d) == 0 || d[0].Percentile != c.first || d[len(d)-1].Percentile != c.last {
			t.Errorf("of %d: got %v, want p%v to p%v", c.n, d, c.first, c.last)
			continue
		}
		for _, p := range d {
			if want := float64(c.n) * p.Percentile / 100 / 1000; math.Abs(p.Seconds/want-1) > 0.0011+1/(1000*want) {
				t.Errorf("of %d, p%v: got %v, want %v", c.n, p.Percentile, p.Seconds, want)
			}
		}
	}
}

func TestLatencyAbove(t *testing.T) {
	l := newLatency()
	for i := range 100 {
		l.add(time.Duration(i+1) * time.Millisecond)
	}
	for d, want := range map[time.Duration]int{0: 100, 500 * time.Microsecond: 100, 50500 * time.Microsecond: 50, time.Second: 0} {
		if got := l.above(d); got != want {
			t.Errorf("above %v: got %d, want %d", d, got, want)
		}
	}
}

func TestLatencyTakesAnyDuration(t *testing.T) {
	l := newLatency()
	for _, d := range []time.Duration{-1, 0, 1, math.MaxInt64} {
		l.add(d)
	}
	if got := l.quantile(1); got < longest || l.histogram.TotalCount() != 4 {
		t.Errorf("got %v of %d", got, l.histogram.TotalCount())
	}
}
