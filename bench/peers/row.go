package main

import (
	"encoding/json"
	"io"
	"math"
	"slices"
)

// row is what was measured of one contestant in one group with one number of
// goroutines. A figure that a group does not have is null.
type row struct {
	Group      string `json:"group"`
	Name       string `json:"name"`
	Goroutines int    `json:"goroutines"`
	Version    string `json:"version"`
	// NsPerOp is the median of the rounds' wall times by the number of operations, or,
	// in the stampede, the wall time of all callers together. NsMin and NsMax are the
	// fastest round and the slowest.
	NsPerOp *float64 `json:"ns_per_op"`
	NsMin   *float64 `json:"ns_min"`
	NsMax   *float64 `json:"ns_max"`
	// AllocsPerOp are the allocations of an operation; of a caller in the stampede.
	AllocsPerOp *float64 `json:"allocs_per_op"`
	// BytesPerEntry is the heap that an entry takes; in the stampede what is allocated
	// for a caller.
	BytesPerEntry *float64 `json:"bytes_per_entry"`
	OpsPerSecond  *float64 `json:"ops_per_second"`
	// Ratio is the throughput beside a storm by that without one.
	Ratio *float64 `json:"ratio,omitempty"`
	// RatioApart is that by the throughput beside the same storm in another cache.
	RatioApart *float64 `json:"ratio_apart,omitempty"`
	// X is how many there are of what grows: keys, goroutines, tiers, bytes of a value.
	X *float64 `json:"x,omitempty"`
}

// newRow makes the row of a subject's samples, of which there is at least one.
func newRow(b block, s subject, samples []sample) row {
	r := row{Group: b.group, Name: s.name, Goroutines: b.goroutines, Version: versionOf(s.module)}
	if b.x > 0 {
		r.X = figure(b.x, 0)
	}
	if heap := middle(samples, func(s sample) float64 { return s.heap }); heap > 0 {
		r.BytesPerEntry = figure(heap, 1)
	}
	ns := middle(samples, nsOf)
	if ns == 0 {
		return r // nothing was timed
	}
	r.NsPerOp = figure(ns, 2)
	r.NsMin = figure(nsOf(slices.MinFunc(samples, byNs)), 2)
	r.NsMax = figure(nsOf(slices.MaxFunc(samples, byNs)), 2)
	r.AllocsPerOp = figure(middle(samples, func(s sample) float64 { return s.allocs }), 2)
	if r.BytesPerEntry == nil { // else it is the stampede, whose time is that of all
		r.OpsPerSecond = figure(1e9/ns, 0)
	}
	return r
}

func nsOf(s sample) float64 { return s.ns }

func byNs(a, b sample) int {
	switch {
	case a.ns < b.ns:
		return -1
	case a.ns > b.ns:
		return 1
	default:
		return 0
	}
}

// middle returns the median of what the samples have.
func middle(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// figure rounds to so many decimals.
func figure(x float64, decimals int) *float64 {
	scale := math.Pow10(decimals)
	x = math.Round(x*scale) / scale
	return &x
}

// writeJSON writes the rows as one array, a row a line.
func writeJSON(w io.Writer, rows []row) error {
	if rows == nil {
		rows = []row{}
	}
	encoded, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(encoded, '\n'))
	return err
}
