package capture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/terracecache/terrace/bench/internal/trace"
)

func nothing(int64) {}

// record captures a trace of text.
func record(t *testing.T, format trace.Format, text string) *Trace {
	t.Helper()
	r, err := trace.NewReader(strings.NewReader(text), trace.Options{Format: format})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Record(t.Context(), r, t.TempDir(), func(m *trace.Malformed) { t.Error(m) }, nothing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// requests reads all back.
func requests(t *testing.T, c *Trace) (all []trace.Request, next []int64) {
	t.Helper()
	err := c.Each(t.Context(), func(b *Batch) error {
		if b.First != int64(len(all)) {
			t.Errorf("a batch begins at %d, after %d requests", b.First, len(all))
		}
		all = append(all, b.Requests...)
		next = append(next, b.Next...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, next
}

// TestRecordKeepsWhatTheTraceHas reads a trace of several chunks back, with all that
// requests can have.
func TestRecordKeepsWhatTheTraceHas(t *testing.T) {
	var costs, sizes strings.Builder
	var wantCosts, wantSizes []trace.Request
	for i := range uint64(2*chunk + 7) {
		cost := trace.Request{Key: i * 7, Cost: float64(i) / 2, Op: trace.Op(i % 2)}
		wantCosts = append(wantCosts, cost)
		fmt.Fprintf(&costs, "%c %x 1 0 %v\n", "ls"[i%2], cost.Key, cost.Cost)
		fmt.Fprintf(&sizes, "%d %d %d\n", i, i%3, i<<20)
		wantSizes = append(wantSizes, trace.Request{Size: int64(i << 20)})
	}
	got, _ := requests(t, record(t, trace.Address, costs.String()))
	for i, want := range wantCosts {
		if got[i] != want {
			t.Fatalf("request %d = %+v, want %+v", i, got[i], want)
		}
	}
	got, _ = requests(t, record(t, trace.Sized, sizes.String()))
	for i, want := range wantSizes {
		if want.Key = got[i%3].Key; got[i] != want {
			t.Fatalf("request %d = %+v, want %+v", i, got[i], want)
		}
	}
}

// TestLinkInParts compares what is found in tables of any size, which takes several goes
// through the trace, with what is found by looking ahead.
func TestLinkInParts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	const n = 2*chunk + 99
	for range n {
		op := []string{"get", "get", "set", "delete"}[random.IntN(4)]
		fmt.Fprintf(&text, "0,k%d,1,1,0,%s,0\n", int(1/(random.Float64()+1e-4)), op)
	}
	for _, slots := range []int{64, 512, mostSlots} {
		c := record(t, trace.Twitter, text.String())
		if err := c.link(t.Context(), slots, nothing); err != nil {
			t.Fatal(err)
		}
		all, next := requests(t, c)
		if len(all) != n || len(next) != n {
			t.Fatalf("%d slots: %d requests, %d links, want %d", slots, len(all), len(next), n)
		}
		seen := make(map[uint64]int64)
		for i := n - 1; i >= 0; i-- {
			want, known := seen[all[i].Key]
			if !known {
				want = Never
			}
			if next[i] != want {
				t.Fatalf("%d slots: after request %d comes %d, want %d", slots, i, next[i], want)
			}
			seen[all[i].Key] = int64(i)
			if all[i].Op == trace.Delete {
				seen[all[i].Key] = Gone
			}
		}
		if got := c.Distinct(); got != int64(len(seen)) {
			t.Errorf("%d slots: %d keys, want %d", slots, got, len(seen))
		}
	}
}

// TestBrokenTrace: of an archive that is cut off there is what could be read, and why it
// is not more.
func TestBrokenTrace(t *testing.T) {
	r, err := trace.NewReader(&cut{strings.NewReader("1\n2\n33")}, trace.Options{Format: trace.LIRS})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Record(t.Context(), r, t.TempDir(), nil, nothing)
	if !errors.As(err, new(*trace.Broken)) || c == nil {
		t.Fatalf("Record = %v, %v", c, err)
	}
	defer c.Close()
	if all, _ := requests(t, c); len(all) != 2 || all[1].Key != 2 {
		t.Errorf("%+v, want 1 and 2: the third may be cut itself", all)
	}
}

// cut fails where it should end.
type cut struct{ *strings.Reader }

func (c *cut) Read(p []byte) (int, error) {
	if c.Len() == 0 {
		return 0, errors.New("the disk is gone")
	}
	return c.Reader.Read(p)
}

// TestNothingIsLeft: neither a capture that is closed nor one that was interrupted leaves
// files behind.
func TestNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	r, err := trace.NewReader(strings.NewReader("1 2 3\n"), trace.Options{Format: trace.Sized})
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := Record(cancelled, r, dir, nil, nothing); c != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v, %v", c, err)
	}
	c, err := Record(t.Context(), r, dir, nil, nothing)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Link(cancelled, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("Link = %v", err)
	}
	c.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
