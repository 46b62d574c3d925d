package main

import (
	"strings"
	"testing"
)

func TestRowOfSamples(t *testing.T) {
	b := block{group: "hit-hot", goroutines: 1}
	r := newRow(b, subject{name: "x"}, []sample{{ns: 30, allocs: 1}, {ns: 10}, {ns: 20.004, allocs: 1}})
	if *r.NsPerOp != 20 || *r.NsMin != 10 || *r.NsMax != 30 || *r.AllocsPerOp != 1 || *r.OpsPerSecond != 49990002 {
		t.Errorf("of three: got %v, %v to %v, %v allocs, %v/s", *r.NsPerOp, *r.NsMin, *r.NsMax, *r.AllocsPerOp, *r.OpsPerSecond)
	}
	if r.BytesPerEntry != nil || r.Ratio != nil {
		t.Errorf("figures that it has not: %v, %v", r.BytesPerEntry, r.Ratio)
	}
	if r := newRow(b, subject{}, []sample{{ns: 10}, {ns: 20}}); *r.NsPerOp != 15 {
		t.Errorf("of two: got %v, want what is between them", *r.NsPerOp)
	}
	if r := newRow(b, subject{}, []sample{{heap: 200.04}}); *r.BytesPerEntry != 200 || r.NsPerOp != nil || r.OpsPerSecond != nil {
		t.Errorf("of memory: got %+v", r)
	}
}

func TestRatiosOfStorms(t *testing.T) {
	rows := []row{
		{Name: "terrace-lru-alone", NsPerOp: figure(50, 0)},
		{Name: "terrace-lru-fill", NsPerOp: figure(100, 0)}, {Name: "terrace-lru-fill-apart", NsPerOp: figure(80, 0)},
		{Name: "terrace-sieve-alone", NsPerOp: figure(20, 0)}, {Name: "terrace-sieve-delete", NsPerOp: figure(16, 0)},
	}
	relateStorms(rows)
	for i, want := range []float64{1, 0.5, 0.625, 1, 1.25} {
		if got := rows[i].Ratio; got == nil || *got != want {
			t.Errorf("%s: got %v, want %v", rows[i].Name, got, want)
		}
	}
	for i, r := range rows {
		if got := r.RatioApart; (i == 1) != (got != nil) || got != nil && *got != 0.8 {
			t.Errorf("%s: of apart: got %v, want 0.8 for the one that has such a row", r.Name, got)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	err := writeTable(&b, "hit-hot, 1 goroutine", []row{
		{Name: "terrace-sieve", Version: "this tree", NsPerOp: figure(25, 0), NsMin: figure(24, 0), NsMax: figure(31, 0), AllocsPerOp: figure(0, 0), OpsPerSecond: figure(4e7, 0)},
		{Name: "slow", Version: "v0.0.0-20241129210726-2c02b8208cf8", NsPerOp: figure(250, 0), NsMin: figure(240, 0), NsMax: figure(1.5e6, 0), AllocsPerOp: figure(1.5, 1), OpsPerSecond: figure(4e6, 0)},
		{Name: "floor", Version: "go1.26.8", NsPerOp: figure(12.5, 1), NsMin: figure(12, 0), NsMax: figure(13, 0), AllocsPerOp: figure(0, 0), OpsPerSecond: figure(8e7, 0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `
hit-hot, 1 goroutine
  name           version             time    least     most  × sieve  allocs   ops/s
  floor          go1.26.8         12.5 ns  12.0 ns  13.0 ns     0.50       0  80000k
  terrace-sieve  this tree        25.0 ns  24.0 ns  31.0 ns     1.00       0  40000k
  slow           v0.0.0-20241129   250 ns   240 ns   1.5 ms    10.00     1.5   4000k
`
	if got := b.String(); got != want {
		t.Errorf("got:%s\nwant:%s", got, want)
	}
}
