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

// percentile is what a share of all is at most.
type percentile struct {
	Percentile float64 `json:"percentile"`
	Seconds    float64 `json:"seconds"`
}

// percents are the percentiles of a distribution.
var percents = []float64{
	1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 55, 60, 65, 70, 75, 80, 85, 90, 92.5, 95, 96, 97, 97.5, 98, 98.5,
	99, 99.25, 99.5, 99.6, 99.7, 99.75, 99.8, 99.85, 99.9, 99.925, 99.95, 99.97, 99.98, 99.99,
}

// beyondPercentile is how many must lie beyond a percentile, on either side, for it to be
// told: with fewer it is chance.
const beyondPercentile = 10

// distribution returns the percentiles for which there are enough. It is empty for fewer
// than 20.
func (l *latency) distribution() []percentile {
	d := []percentile{}
	n := float64(l.histogram.TotalCount())
	for _, p := range percents {
		if n*min(p, 100-p)/100 >= beyondPercentile-1e-6 { // percents are not exact in binary
			d = append(d, percentile{p, l.quantile(p / 100).Seconds()})
		}
	}
	return d
}

// above returns how many took longer, each by a digit more or less.
func (l *latency) above(d time.Duration) int {
	n := int64(0)
	for _, bar := range l.histogram.Distribution() {
		if bar.From > int64(d) {
			n += bar.Count
		}
	}
	return int(n)
}

// count returns how many there are.
func (l *latency) count() int { return int(l.histogram.TotalCount()) }
