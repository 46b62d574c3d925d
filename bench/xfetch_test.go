package main

import (
	"math"
	"strings"
	"testing"
)

func TestXFetch(t *testing.T) {
	rep := decoded[xfetchReport](t, "xfetch", "--seed", "9")
	if e := rep.Environment; !e.Complete || e.Delta != 0.1 || e.Beta != 1 || e.Draws != 100_000 || e.Seed != 9 {
		t.Errorf("environment: %+v", e)
	}
	want := []struct{ before, share float64 }{{0.5, 0.007}, {0.3, 0.05}, {0.2, 0.135}, {0.1, 0.368}, {0.05, 0.607}, {0, 1}}
	if len(rep.Rows) != len(want) {
		t.Fatalf("got %d rows, want %d", len(rep.Rows), len(want))
	}
	for i, row := range rep.Rows {
		if row.Before != want[i].before || math.Abs(row.Formula-want[i].share) > 0.0005 {
			t.Errorf("row %d: %+v, want %+v", i, row, want[i])
		}
		if within := 5 * math.Sqrt(row.Formula*(1-row.Formula)/100_000); math.Abs(row.Share-row.Formula) > within {
			t.Errorf("%v before: share %v, want %v ± %v", row.Before, row.Share, row.Formula, within)
		}
	}
}

func TestXFetchTable(t *testing.T) {
	code, stdout, stderr := bench(t.Context(), "xfetch", "--draws", "1000", "--beta", "2", "--before", "0s,1s")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"beta 2", "1000 reads", "\n0s                  100.00     100.00\n", "\n1s ", "0.67\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("got %q, want %q in it", stdout, want)
		}
	}
}
