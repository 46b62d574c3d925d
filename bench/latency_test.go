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

func TestLatencyTakesAnyDuration(t *testing.T) {
	l := newLatency()
	for _, d := range []time.Duration{-1, 0, 1, math.MaxInt64} {
		l.add(d)
	}
	if got := l.quantile(1); got < longest || l.histogram.TotalCount() != 4 {
		t.Errorf("got %v of %d", got, l.histogram.TotalCount())
	}
}
