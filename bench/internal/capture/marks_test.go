package capture

import (
	"math/rand/v2"
	"testing"

	"github.com/terracecache/terrace/bench/internal/trace"
)

// TestMarks compares the set with a map, in both its forms.
func TestMarks(t *testing.T) {
	const requests = 3000
	for name, most := range map[string]int64{"bits": requests, "table": 1} {
		random := rand.New(rand.NewPCG(5, 6))
		m, want := (&Trace{counts: Counts{Requests: requests}}).NewMarks(most), make(map[int64]bool)
		if (m.bits != nil) != (name == "bits") {
			t.Fatalf("of %d requests with %d marks: bits are %v", requests, most, m.bits != nil)
		}
		for range 200_000 {
			v := random.Int64N(requests)
			if v > 0 && !want[v] && random.IntN(2) == 0 {
				m.Add(v)
				want[v] = true
				continue
			}
			if got := m.Remove(v); got != want[v] {
				t.Fatalf("%s: Remove(%d) = %v", name, v, got)
			}
			delete(want, v)
			if m.Len() != len(want) {
				t.Fatalf("%s: %d marks, want %d", name, m.Len(), len(want))
			}
		}
	}
}

// TestCursor: it has what batches have.
func TestCursor(t *testing.T) {
	n := int64(2*chunk + 5)
	c, err := Generate(t.Context(), t.TempDir(), trace.Fields{}, func(q *trace.Request) bool {
		q.Key = uint64(n * n % 1009)
		n--
		return n >= 0
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Link(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	_, want := requests(t, c)
	cursor := c.Cursor()
	for i, next := range want {
		if got, err := cursor.Next(); err != nil || got != next {
			t.Fatalf("request %d: %d, %v, want %d", i, got, err, next)
		}
	}
}
