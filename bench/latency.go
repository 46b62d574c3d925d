package main

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latency is a distribution of how long reads took. It is not safe for concurrent
// use.
type latency struct {
	histogram *hdrhistogram.Histogram // of nanoseconds
}

const (
	// longest is the most that is told apart; what takes longer counts as this.
	longest = 5 * time.Minute
	// digits is how many significant digits a figure has: within 1 in 1,000.
	digits = 3
)

func newLatency() *latency {
	return &latency{histogram: hdrhistogram.New(1, int64(longest), digits)}
}

func (l *latency) add(d time.Duration) {
	_ = l.histogram.RecordValue(int64(min(max(d, 1), longest))) // in range, so it does not fail
}

func (l *latency) quantile(q float64) time.Duration {
	return time.Duration(l.histogram.ValueAtQuantile(100 * q))
}

// percentiles are a latency's figures in seconds.
type percentiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

func (l *latency) percentiles() percentiles {
	return percentiles{
		P50:  l.quantile(0.5).Seconds(),
		P90:  l.quantile(0.9).Seconds(),
		P99:  l.quantile(0.99).Seconds(),
		P999: l.quantile(0.999).Seconds(),
		Max:  l.quantile(1).Seconds(),
	}
}
