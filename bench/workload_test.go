package main

import (
	"math"
	"slices"
	"testing"
)

func TestWorkloadFollowsItsSeed(t *testing.T) {
	a, b := newWorkload(100, 1, 1000, 7), newWorkload(100, 1, 1000, 7)
	if !slices.Equal(a.sequence, b.sequence) {
		t.Error("one seed gave two sequences")
	}
	if c := newWorkload(100, 1, 1000, 8); slices.Equal(a.sequence, c.sequence) {
		t.Error("two seeds gave one sequence")
	}
	// The first of seed 1: a change of the generator makes old reports incomparable.
	if got, want := newWorkload(1000, 1, 0, 1).sequence[:8], []uint32{32, 312, 406, 266, 455, 269, 0, 18}; !slices.Equal(got, want) {
		t.Errorf("seed 1 begins with %v, want %v", got, want)
	}
}

func TestWorkloadIsZipf(t *testing.T) {
	for _, skew := range []float64{0, 0.5, 1, 1.5} {
		const keys = 50
		w := newWorkload(keys, skew, 0, 1)
		counts := make([]float64, keys)
		for _, k := range w.sequence {
			counts[k]++
		}
		sum := 0.0
		for i := range keys {
			sum += math.Pow(float64(i+1), -skew)
		}
		for i, got := range counts {
			want := float64(len(w.sequence)) * math.Pow(float64(i+1), -skew) / sum
			if math.Abs(got-want) > 6*math.Sqrt(want) {
				t.Errorf("skew %v, key %d: got %.0f, want about %.0f", skew, i, got, want)
			}
		}
	}
}

func TestWorkloadOfOneKey(t *testing.T) {
	w := newWorkload(1, 10, 0, 1)
	if i, key := w.key(math.MaxInt32); i != 0 || key != "key-0000000" {
		t.Errorf("got %d, %q", i, key)
	}
}
