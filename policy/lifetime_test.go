package policy_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/terracecache/terrace/policy"
)

// latest is the largest draw there is.
var latest = math.Nextafter(1, 0)

func TestLifetimeValidate(t *testing.T) {
	good := policy.Lifetime{TTL: time.Minute, Jitter: 0.1, StaleWhileRevalidate: time.Second, StaleIfError: time.Hour, Absent: time.Second}
	if err := good.Validate(); err != nil {
		t.Errorf("%+v: %v", good, err)
	}
	if err := (policy.Lifetime{TTL: policy.Forever}).Validate(); err != nil {
		t.Errorf("Forever: %v", err)
	}
	for name, breaks := range map[string]func(*policy.Lifetime){
		"no ttl":         func(l *policy.Lifetime) { l.TTL = 0 },
		"ttl":            func(l *policy.Lifetime) { l.TTL = -1 },
		"jitter below 0": func(l *policy.Lifetime) { l.Jitter = -0.1 },
		"jitter 1":       func(l *policy.Lifetime) { l.Jitter = 1 },
		"jitter NaN":     func(l *policy.Lifetime) { l.Jitter = math.NaN() },
		"stale":          func(l *policy.Lifetime) { l.StaleWhileRevalidate = -1 },
		"error":          func(l *policy.Lifetime) { l.StaleIfError = -1 },
		"absent":         func(l *policy.Lifetime) { l.Absent = -1 },
	} {
		l := good
		breaks(&l)
		if err := l.Validate(); err == nil {
			t.Errorf("%s: %+v is valid", name, l)
		}
	}
}

// Lives are spread evenly over the whole band of the jitter, and stay in it.
func TestJitter(t *testing.T) {
	const ttl = 10 * time.Second
	l := policy.Lifetime{TTL: ttl, Jitter: 0.1, StaleIfError: time.Minute}
	rnd := rand.New(rand.NewPCG(1, 2))
	const draws, bins = 100_000, 20
	var count [bins]int
	var sum time.Duration
	for range draws {
		life := l.Value(0, rnd.Float64())
		if life.Fresh < 9*time.Second || life.Fresh > 11*time.Second {
			t.Fatalf("fresh for %v, want 9 s to 11 s", life.Fresh)
		}
		if life.Usable != life.Fresh+time.Minute {
			t.Fatalf("fresh for %v, usable for %v, want a minute longer", life.Fresh, life.Usable)
		}
		sum += life.Fresh - ttl
		count[(life.Fresh-9*time.Second)*bins/(2*time.Second+1)]++
	}
	if mean := sum / draws; mean > 20*time.Millisecond || mean < -20*time.Millisecond {
		t.Errorf("the mean is %v off", mean)
	}
	for i, n := range count {
		if want := draws / bins; math.Abs(float64(n-want)) > 6*math.Sqrt(float64(want)) {
			t.Errorf("bin %d of %d holds %d lives, want about %d", i, bins, n, want)
		}
	}
	if got := l.Value(0, 0).Fresh; got != 9*time.Second {
		t.Errorf("the least draw gives %v, want 9s", got)
	}
	if got := l.Value(0, 0.5).Fresh; got != ttl {
		t.Errorf("the middle draw gives %v, want %v", got, ttl)
	}
}

func TestLifetimeValue(t *testing.T) {
	for _, c := range []struct {
		name string
		l    policy.Lifetime
		ttl  time.Duration
		u    float64
		want policy.Life
	}{
		{"plain", policy.Lifetime{TTL: 5}, 0, latest, policy.Life{Fresh: 5, Usable: 5}},
		{"a ttl of its own", policy.Lifetime{TTL: 5, StaleIfError: 2}, 7, 0, policy.Life{Fresh: 7, Usable: 9}},
		{"a negative ttl is none", policy.Lifetime{TTL: 5}, -7, 0, policy.Life{Fresh: 5, Usable: 5}},
		{"the longer window", policy.Lifetime{TTL: 5, StaleWhileRevalidate: 3, StaleIfError: 2}, 0, 0, policy.Life{Fresh: 5, Usable: 8}},
		{"never zero", policy.Lifetime{TTL: 1, Jitter: 0.99}, 0, 0, policy.Life{Fresh: 1, Usable: 1}},
		{"endless has no jitter", policy.Lifetime{TTL: policy.Forever, Jitter: 0.9}, 0, 0, policy.Life{Fresh: policy.Forever, Usable: policy.Forever}},
		{"endless with a window", policy.Lifetime{TTL: policy.Forever, StaleIfError: 9}, 0, 0, policy.Life{Fresh: policy.Forever, Usable: policy.Forever}},
		{"a window without end", policy.Lifetime{TTL: 5, StaleIfError: policy.Forever}, 0, 0, policy.Life{Fresh: 5, Usable: policy.Forever}},
		{"jitter beyond the range", policy.Lifetime{TTL: policy.Forever - 1, Jitter: 0.9}, 0, latest, policy.Life{Fresh: policy.Forever, Usable: policy.Forever}},
		{"a sum beyond the range", policy.Lifetime{TTL: policy.Forever - 1, StaleIfError: 2}, 0, 0, policy.Life{Fresh: policy.Forever - 1, Usable: policy.Forever}},
	} {
		if got := c.l.Value(c.ttl, c.u); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestLifetimeAbsence(t *testing.T) {
	if life, ok := (policy.Lifetime{TTL: 5}).Absence(0, 0.5); ok {
		t.Errorf("without Absent: %+v, want none", life)
	}
	l := policy.Lifetime{TTL: time.Hour, Absent: 10 * time.Second, Jitter: 0.5, StaleIfError: time.Hour}
	for u, want := range map[float64]time.Duration{0: 5 * time.Second, 0.5: 10 * time.Second, 0.75: 12500 * time.Millisecond} {
		if life, ok := l.Absence(0, u); !ok || life != (policy.Life{Fresh: want, Usable: want}) {
			t.Errorf("draw %v: %+v, %v, want %v without a stale window", u, life, ok, want)
		}
	}
}

// No draw gives more than Longest.
func TestLongest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		l := policy.Lifetime{
			TTL:                  time.Duration(rnd.Int64N(1<<uint(1+rnd.IntN(62)))) + 1,
			Jitter:               rnd.Float64() * 0.99,
			StaleWhileRevalidate: time.Duration(rnd.Int64N(1 << 40)),
			StaleIfError:         time.Duration(rnd.Int64N(1 << 62)),
			Absent:               time.Duration(rnd.Int64N(1 << 62)),
		}
		longest := l.Longest()
		for _, u := range []float64{0, rnd.Float64(), latest} {
			life := l.Value(0, u)
			absence, _ := l.Absence(0, u)
			if life.Fresh <= 0 || life.Usable < life.Fresh || life.Usable > longest || absence.Usable > longest {
				t.Fatalf("%+v, draw %v: %+v and %+v, longest %v", l, u, life, absence, longest)
			}
		}
	}
}
