package lab_test

import (
	"math"
	"testing"
	"time"

	"github.com/terracecache/terrace/bench/internal/lab"
)

// The published table: 5,000 keys, 300 s, the mean of 20 seeds.
func TestExpiryTable(t *testing.T) {
	const seeds = 20
	for _, c := range []struct {
		jitter float64
		want   [3]float64
		within float64
	}{
		{0, [3]float64{5000, 5000, 5000}, 0},
		{0.05, [3]float64{193, 174, 145}, 0.15},
		{0.1, [3]float64{98, 103, 76}, 0.15},
		{0.2, [3]float64{60, 50, 40}, 0.15},
	} {
		var busiest [3]float64
		e := lab.Expiry{Keys: 5000, TTL: 300 * time.Second, Jitter: c.jitter, Cycles: 3}
		if err := e.Validate(); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(seeds) {
			x := e.Run(seed)
			for i, n := range x.Busiest {
				busiest[i] += float64(n) / seeds
			}
			if x.Average < 16.6 || x.Average > 16.7 {
				t.Errorf("jitter %v, seed %d: average %.3f, want 16.6 to 16.7", c.jitter, seed, x.Average)
			}
		}
		t.Logf("jitter %v: busiest %.1f", c.jitter, busiest)
		for i, want := range c.want {
			if math.Abs(busiest[i]-want) > c.within*want+1e-6 {
				t.Errorf("jitter %v, cycle %d: busiest second %.1f, want %v within %v", c.jitter, i+1, busiest[i], want, c.within)
			}
		}
	}
}

func TestExpiryIsTheSeeds(t *testing.T) {
	e := lab.Expiry{Keys: 100, TTL: 30 * time.Second, Jitter: 0.2, Cycles: 3}
	total := func(x lab.Expiries) (n int) {
		for _, b := range x.Busiest {
			n = 1000*n + b
		}
		return n
	}
	if a, b := total(e.Run(7)), total(e.Run(7)); a != b {
		t.Errorf("the same seed: %d and %d", a, b)
	}
	differ := false
	for seed := range uint64(10) {
		differ = differ || total(e.Run(7)) != total(e.Run(seed))
	}
	if !differ {
		t.Error("all seeds give the same")
	}
}

// A key whose life ends between two seconds is loaded in the later one.
func TestExpiryOfABrokenSecond(t *testing.T) {
	x := lab.Expiry{Keys: 3, TTL: 2500 * time.Millisecond, Cycles: 2}.Run(1)
	if x.Average != 1 {
		t.Errorf("average %v, want 1: three keys, loaded at 3 and at 6", x.Average)
	}
}

func TestExpiryValidate(t *testing.T) {
	good := lab.Expiry{Keys: 1, TTL: 2 * time.Second, Cycles: 1}
	if err := good.Validate(); err != nil {
		t.Errorf("%+v: %v", good, err)
	}
	for name, breaks := range map[string]func(*lab.Expiry){
		"keys":   func(e *lab.Expiry) { e.Keys = 0 },
		"ttl":    func(e *lab.Expiry) { e.TTL = time.Second },
		"jitter": func(e *lab.Expiry) { e.Jitter = 1 },
		"cycles": func(e *lab.Expiry) { e.Cycles = 0 },
	} {
		e := good
		breaks(&e)
		if e.Validate() == nil {
			t.Errorf("%s: %+v is valid", name, e)
		}
	}
}
