package lab_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/terracecache/terrace/bench/internal/lab"
)

func TestEvenArrivals(t *testing.T) {
	a := lab.Arrivals{Kind: lab.Even, Rate: 100, Length: 20 * time.Second}
	for a.Seed = range 20 {
		times := a.Times()
		if len(times) != 2000 || times[0] < 0 || times[0] >= 10*time.Millisecond {
			t.Fatalf("seed %d: %d arrivals from %v", a.Seed, len(times), times[0])
		}
		for i := 1; i < len(times); i++ {
			if gap := times[i] - times[i-1]; gap < 10*time.Millisecond-1 || gap > 10*time.Millisecond+1 {
				t.Fatalf("seed %d: a gap of %v", a.Seed, gap)
			}
		}
	}
}

func TestPoissonArrivals(t *testing.T) {
	a := lab.Arrivals{Kind: lab.Poisson, Rate: 100, Length: 1000 * time.Second, Seed: 3}
	times := a.Times()
	if n := len(times); math.Abs(float64(n-100_000)) > 5*math.Sqrt(100_000) {
		t.Errorf("%d arrivals, want about 100,000", n)
	}
	if !slices.IsSorted(times) || times[len(times)-1] >= a.Length {
		t.Error("out of order, or beyond the end")
	}
	long := 0 // gaps above the mean, of which there are exp(-1)
	for i := 1; i < len(times); i++ {
		if times[i]-times[i-1] > 10*time.Millisecond {
			long++
		}
	}
	if share := float64(long) / float64(len(times)); math.Abs(share-1/math.E) > 0.01 {
		t.Errorf("share of long gaps %.3f, want %.3f", share, 1/math.E)
	}
}
