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
		n := 20_000
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
			r, err := replay.Run(t.Context(), rec, []replay.Tier{{Policy: "lru", Size: size}}, nothing)
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Hits(size); got != r.Hits {
				t.Errorf("%d keys, lru of %d: %d hits by distances, and the store has %d", keys, size, got, r.Hits)
			}
		}
	}
}
