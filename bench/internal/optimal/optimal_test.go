package optimal

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/trace"
)

func nothing(int64) {}

func record(t *testing.T, format trace.Format, text string) *capture.Trace {
	t.Helper()
	r, err := trace.NewReader(strings.NewReader(text), trace.Options{Format: format})
	if err != nil {
		t.Fatal(err)
	}
	c, err := capture.Record(t.Context(), r, t.TempDir(), func(m *trace.Malformed) { t.Error(m) }, nothing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Link(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	return c
}

// access is a request of a small trace.
type access struct {
	key, size int
	deletes   bool
}

// best tries all that a cache can do, and returns the most hits that it can have. The held
// objects are bits; each has the size of its last request.
func best(accesses []access, capacity int) int {
	type state struct {
		held  uint
		sizes [4]int8
	}
	states := map[state]int{{}: 0}
	for _, a := range accesses {
		next := make(map[state]int)
		add := func(s state, hits int) {
			used := 0
			for key, size := range s.sizes {
				if s.held>>key&1 == 1 {
					used += int(size)
				}
			}
			if was, known := next[s]; used <= capacity && (!known || was < hits) {
				next[s] = hits
			}
		}
		bit := uint(1) << a.key
		for s, hits := range states {
			if a.deletes {
				s.held &^= bit
				s.sizes[a.key] = 0
				add(s, hits)
				continue
			}
			if s.held&bit != 0 {
				hits++
			}
			s.sizes[a.key] = int8(a.size)
			// Afterwards it holds any of what it held and the object.
			may := s.held | bit
			for keep := may; ; keep = (keep - 1) & may {
				k := s
				k.held = keep
				for key := range k.sizes {
					if keep>>key&1 == 0 {
						k.sizes[key] = 0
					}
				}
				add(k, hits)
				if keep == 0 {
					break
				}
			}
		}
		states = next
	}
	return slices.Max(slices.Collect(maps.Values(states)))
}

// TestBounds compares the bounds with the best of all that can be done: Belady's is that,
// and the one of bytes is never less.
func TestBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	near, sum := 0, 0
	for round := range 60 {
		unit, different := make([]access, 18), make([]access, 18)
		var text, sized strings.Builder
		for i := range unit {
			a := access{key: random.IntN(4), size: 1, deletes: random.IntN(8) == 0}
			unit[i] = a
			a.size = 1 + random.IntN(5)
			different[i] = a
			op := "get"
			if a.deletes {
				op = "delete"
			}
			fmt.Fprintf(&text, "0,k%d,0,1,0,%s,0\n", a.key, op)
			fmt.Fprintf(&sized, "0,k%d,0,%d,0,%s,0\n", a.key, a.size, op)
		}
		c := record(t, trace.Twitter, text.String())
		s := record(t, trace.Twitter, sized.String())
		for capacity := 1; capacity <= 4; capacity++ {
			got, err := Belady(t.Context(), c, int64(capacity), nothing)
			if err != nil {
				t.Fatal(err)
			}
			if want := best(unit, capacity); int(got.Hits) != want || got.Requests != 18 {
				t.Fatalf("round %d: %v in %d: %d hits of %d, want %d", round, unit, capacity, got.Hits, got.Requests, want)
			}
		}
		for _, capacity := range []int{1, 4, 7, 12} {
			got, err := Volume(t.Context(), s, int64(capacity), nothing)
			if err != nil {
				t.Fatal(err)
			}
			want := best(different, capacity)
			if int(got.Hits) < want {
				t.Fatalf("round %d: %v in %d bytes: a bound of %d hits, and %d can be had", round, different, capacity, got.Hits, want)
			}
			near += want
			sum += int(got.Hits)
		}
	}
	if sum > 2*near {
		t.Errorf("bytes: bounds of %d hits for %d, which says nothing", sum, near)
	}
}

// TestLatest compares the heap with a sorted list.
func TestLatest(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	var h latest
	var want []int64
	for round := range 20_000 {
		switch {
		case round%1000 == 999:
			h = slices.DeleteFunc(h, func(v int64) bool { return v < 500 })
			h.order()
			want = slices.DeleteFunc(want, func(v int64) bool { return v < 500 })
		case len(want) == 0 || random.IntN(5) > 1:
			v := random.Int64N(1000)
			h.push(v)
			at, _ := slices.BinarySearch(want, v)
			want = slices.Insert(want, at, v)
		default:
			last := len(want) - 1
			if got := h.pop(); got != want[last] {
				t.Fatalf("pop = %d, want %d", got, want[last])
			}
			want = want[:last]
		}
	}
}
