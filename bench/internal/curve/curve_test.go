package curve

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/replay"
	"github.com/terracecache/terrace/bench/internal/trace"
)

func linked(t testing.TB, rec *capture.Trace, err error) *capture.Trace {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rec.Close)
	if err := rec.Link(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	return rec
}

// public records one of the public traces, which lie beside the project.
func public(t testing.TB, name string) *capture.Trace {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "..", "shared", "traces", name))
	if err != nil {
		t.Skipf("the public cache traces are not there: %v", err)
	}
	defer f.Close()
	r, err := trace.NewReader(f, trace.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rec, err := capture.Record(t.Context(), r, t.TempDir(), func(*trace.Malformed) {}, nothing)
	return linked(t, rec, err)
}

// TestDistancesAreThoseOfTheStore compares one pass with replays through the real LRU, on
// requests with deletions, at sizes of all kinds.
func TestDistancesAreThoseOfTheStore(t *testing.T) {
	for _, keys := range []int{3, 40, 3000} {
		rnd := rand.New(rand.NewPCG(uint64(keys), 1))
		n := 8000
		rec, err := capture.Generate(t.Context(), t.TempDir(), trace.Fields{Ops: true}, func(q *trace.Request) bool {
			q.Key = uint64(float64(keys) * math.Pow(rnd.Float64(), 2))
			if u := rnd.IntN(10); u < 2 {
				q.Op = trace.Delete
			} else if u < 4 {
				q.Op = trace.Write
			}
			n--
			return n >= 0
		})
		linked(t, rec, err)
		d, err := MeasureDistances(t.Context(), rec, nothing)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int64{1, 2, 3, 10, 37, 100, 999, 3000, 1 << 20} {
			r, err := replay.Run(t.Context(), rec, []replay.Tier{{Policy: "lru", Size: size}}, 0, nothing)
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Hits(size); got != r.Hits {
				t.Errorf("%d keys, lru of %d: %d hits by distances, and the store has %d", keys, size, got, r.Hits)
			}
		}
	}
}

// TestPartIsLikeTheWhole: a tenth of the keys is within 2 points of full replays. Of the
// long trace these are figures of "bench trace", as they take minutes.
func TestPartIsLikeTheWhole(t *testing.T) {
	if raceEnabled {
		t.Skip("takes long under the race detector, for one goroutine")
	}
	full := map[int64]map[string]float64{
		15250:  {"lru": 0.0199, "2q": 0.0611, "arc": 0.0801, "w-tinylfu": 0.0870, "sieve": 0.0813},
		76254:  {"lru": 0.1681, "2q": 0.2938, "arc": 0.3272, "w-tinylfu": 0.3393, "sieve": 0.3197},
		228762: {"lru": 0.6250, "2q": 0.6285, "arc": 0.6198, "w-tinylfu": 0.5689, "sieve": 0.5827},
		381271: {"lru": 0.7451, "2q": 0.7456, "arc": 0.7526, "w-tinylfu": 0.7500, "sieve": 0.7593},
	}
	rec := public(t, "p3.arc.gz")
	m, err := Reduce(t.Context(), rec, Options{Smallest: 15250})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Requests()*10 > rec.Counts().Requests {
		t.Errorf("%d requests of %d are replayed: more than a tenth", m.Requests(), rec.Counts().Requests)
	}
	lru, err := m.LRU(t.Context(), nothing)
	if err != nil {
		t.Fatal(err)
	}
	sum, most, n := 0.0, 0.0, 0.0
	for size, policies := range full {
		for p, want := range policies {
			e := lru(size)
			if p != "lru" {
				if e, err = m.Replay(t.Context(), []replay.Tier{{Name: "l1", Policy: p, Size: size}}, 0, nothing); err != nil {
					t.Fatal(err)
				}
			}
			off := math.Abs(e.HitRatio - want)
			if off > 0.02 {
				t.Errorf("%s of %d: %.4f, and a full replay has %.4f", p, size, e.HitRatio, want)
			}
			sum, most, n = sum+off, max(most, off), n+1
		}
	}
	t.Logf("%.2f points off in the mean, %.2f at most", 100*sum/n, 100*most)
	spread, err := m.Spread(t.Context(), []int64{15250, 76254, 228762})
	if err != nil {
		t.Fatal(err)
	}
	if spread <= 0 || spread > 0.02 {
		t.Errorf("halves of the part differ by %.4f", spread)
	}
}

// zipf draws requests of keys whose popularity falls with their rank.
func zipf(t testing.TB, skew float64, keys, n int) *capture.Trace {
	t.Helper()
	draw := rand.NewZipf(rand.New(rand.NewPCG(1, 3)), skew, 1, uint64(keys-1))
	rec, err := capture.Generate(t.Context(), t.TempDir(), trace.Fields{}, func(q *trace.Request) bool {
		q.Key = draw.Uint64()
		n--
		return n >= 0
	})
	return linked(t, rec, err)
}

// TestPopularKeysStandForThemselves: however popular a few keys are, a part has no more
// requests than it may, whichever keys are in it, and is like the whole.
func TestPopularKeysStandForThemselves(t *testing.T) {
	rec := zipf(t, 1.1, 200_000, 300_000)
	d, err := MeasureDistances(t.Context(), rec, nothing)
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int64{2500, 5000, 10_000}
	for seed := range uint64(6) {
		m, err := Reduce(t.Context(), rec, Options{Most: 0.08, Smallest: sizes[0], Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if got := float64(m.Requests()) / float64(m.Whole()); !m.Sampled() || got > 0.08 || got < 0.06 {
			t.Errorf("seed %d: the part has %.3f of the requests", seed, got)
		}
		lru, err := m.LRU(t.Context(), nothing)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range sizes {
			want := float64(d.Hits(size)) / float64(m.Whole())
			if got := lru(size); math.Abs(got.HitRatio-want) > 0.01 || got.HitRatio != got.Tiers[0] {
				t.Errorf("seed %d: an LRU of %d has %.4f, want %.4f", seed, size, got.HitRatio, want)
			}
			if e, err := m.Replay(t.Context(), []replay.Tier{{Policy: "lru", Size: size}}, 0, nothing); err != nil || e.HitRatio != lru(size).HitRatio {
				t.Errorf("seed %d: a replay of %d has %.4f, %v, and its distances %.4f", seed, size, e.HitRatio, err, lru(size).HitRatio)
			}
		}
	}
}

// TestHotKeysAreDeleted: what becomes of keys that are in no part is known, deletions too.
func TestHotKeysAreDeleted(t *testing.T) {
	i := 0
	rec, err := capture.Generate(t.Context(), t.TempDir(), trace.Fields{Ops: true}, func(q *trace.Request) bool {
		switch i++; i % 4 {
		case 1:
			q.Op = trace.Delete
		case 3:
			q.Key = uint64(i)
		}
		return i <= 40_000
	})
	linked(t, rec, err)
	m, err := Reduce(t.Context(), rec, Options{Rate: 0.1, Smallest: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e, err := m.Replay(t.Context(), []replay.Tier{{Policy: "lru", Size: 1000}}, 0, nothing)
	if err != nil || math.Abs(e.HitRatio-0.25) > 1e-3 {
		t.Errorf("every fourth request is a hit: got %.4f, %v", e.HitRatio, err)
	}
}

// TestRate: of many keys a part is taken, a greater one where the popular keys are left out or
// the smallest store is small.
func TestRate(t *testing.T) {
	for _, test := range []struct {
		keys int64
		cold float64
		o    Options
		want float64
	}{
		{1011, 1, Options{Smallest: 500}, 1},
		{4000, 1, Options{Smallest: 4000}, 0.5},
		{1011, 1, Options{Smallest: 100}, 1},
		{600_000, 1, Options{Smallest: 500}, 0.2},
		{600_000, 1, Options{Smallest: 4000}, 0.1},
		{600_000, 1, Options{Smallest: 4000, Most: 0.06}, 0.06},
		{600_000, 0.75, Options{Smallest: 4000, Most: 0.06}, 0.08},
		{600_000, 0.01, Options{Smallest: 4000, Most: 0.06}, enoughKeys / 600_000.0},
		{1 << 26, 1, Options{Smallest: 1 << 20}, 1.0 / 1024},
		{1 << 26, 1, Options{Smallest: 1 << 20, Rate: 0.3}, 0.3},
	} {
		if got := test.o.rate(test.keys, test.cold); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}
