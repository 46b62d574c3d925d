package lab_test

import (
	"math"
	"testing"
	"time"

	"github.com/terracecache/terrace/bench/internal/lab"
)

// The published table, and the formula, within five standard deviations of the draw.
func TestRefreshShareTable(t *testing.T) {
	const draws, delta = 100_000, 100 * time.Millisecond
	for before, want := range map[time.Duration]float64{
		500 * time.Millisecond: 0.007,
		300 * time.Millisecond: 0.050,
		200 * time.Millisecond: 0.135,
		100 * time.Millisecond: 0.368,
		50 * time.Millisecond:  0.607,
		0:                      1,
		-time.Second:           1,
	} {
		formula := lab.RefreshFormula(1, before, delta)
		if math.Abs(formula-want) > 0.0005 {
			t.Errorf("%v before: formula %.4f, want %.3f", before, formula, want)
		}
		for seed := range uint64(5) {
			got := lab.RefreshShare(1, before, delta, draws, seed)
			if within := 5 * math.Sqrt(formula*(1-formula)/draws); math.Abs(got-formula) > within {
				t.Errorf("%v before, seed %d: share %.4f, want %.4f ± %.4f", before, seed, got, formula, within)
			}
		}
	}
}
