package main

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// decoded runs the command with --json - and decodes what it printed.
func decoded[R any](t *testing.T, args ...string) (report R) {
	t.Helper()
	code, stdout, stderr := bench(t.Context(), append(args, "--json", "-")...)
	if code != exitOK || stderr != "" {
		t.Fatalf("%v: exit code %d, stderr %q", args, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v: %v in %q", args, err, stdout)
	}
	return report
}

func TestJitter(t *testing.T) {
	rep := decoded[jitterReport](t, "jitter")
	if e := rep.Environment; !e.Complete || e.Keys != 5000 || e.TTL != 300 || e.Seeds != 20 || e.Seed != 1 {
		t.Errorf("environment: %+v", e)
	}
	want := map[float64][]float64{0: {5000, 5000, 5000}, 0.05: {193, 174, 145}, 0.1: {98, 103, 76}, 0.2: {60, 50, 40}}
	if len(rep.Rows) != len(want) {
		t.Fatalf("got %d rows, want %d", len(rep.Rows), len(want))
	}
	for _, row := range rep.Rows {
		for i, want := range want[row.Jitter] {
			if math.Abs(row.Busiest[i]-want) > 0.15*want*math.Ceil(row.Jitter) {
				t.Errorf("jitter %v: busiest %v, want %v within 15 %%", row.Jitter, row.Busiest, want)
			}
		}
		if row.Average < 16.6 || row.Average > 16.7 {
			t.Errorf("jitter %v: average %v, want 16.6 to 16.7", row.Jitter, row.Average)
		}
	}
}

func TestJitterTable(t *testing.T) {
	code, stdout, stderr := bench(t.Context(), "jitter", "--keys", "10", "--ttl", "10s", "--cycles", "2", "--seeds", "2", "--jitter", "0,0.5")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"10 keys", "ttl 10s", "cycle 2", "\n0              10.0       10.0       1.00\n", "\n0.5 ", "How to read it"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("got %q, want %q in it", stdout, want)
		}
	}
}

func TestLabRefusesWhatItCannotDo(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"jitter --keys 0", "--keys 0"},
		{"jitter --ttl 1s", "--ttl 1s"},
		{"jitter --ttl -5s", "--ttl -5s"},
		{"jitter --cycles 0", "--cycles 0"},
		{"jitter --seeds 0", "--seeds 0"},
		{"jitter --jitter 1", "--jitter 1"},
		{"jitter --jitter NaN", "--jitter NaN"},
		{"jitter --jitter 0.1,0.1", "named twice"},
		{"jitter --keys 10000000 --cycles 1000", "lives to draw"},
		{"jitter 0.1", "unexpected argument"},
		{"jitter --json=", "--json is empty"},
		{"xfetch --delta 0s", "--delta 0s"},
		{"xfetch --beta 0", "--beta 0"},
		{"xfetch --beta NaN", "--beta NaN"},
		{"xfetch --draws 0", "--draws 0"},
		{"xfetch --before -1s", "--before -1s"},
		{"xfetch --before 1s,1000ms", "named twice"},
		{"xfetch --json=", "--json is empty"},
		{"xfetch --json /nowhere/x.json", "cannot write"},
		{"stampede --rate 0", "--rate 0"},
		{"stampede --seconds NaN", "--seconds NaN"},
		{"stampede --ttl 1ms", "--ttl 1ms"},
		{"stampede --stale 0s", "--stale 0s"},
		{"stampede --latency 0s", "--latency 0s"},
		{"stampede --latency 2s", "stale when it comes"},
		{"stampede --capacity 0", "--capacity 0"},
		{"stampede --slow 0s", "--slow 0s"},
		{"stampede --processes 1", "--processes 1"},
		{"stampede --pause 0s", "--pause 0s"},
		{"stampede --arrivals bunched", `no "bunched"`},
		{"stampede --rate 1000 --seconds 3000", "3000000.0 requests"},
		{"stampede --rate 0.1 --seconds 1", "0.1 requests"},
		{"stampede --rate 100000 --seconds 1 --latency 1s", "wait at once"},
		{"stampede --json=", "--json is empty"},
	} {
		code, stdout, stderr := bench(t.Context(), strings.Fields(c.args)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%s: exit code %d, stdout %q", c.args, code, stdout)
		}
		wantOneLine(t, stderr, c.want)
	}
}

func TestJitterAndXFetchAreInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, command := range []string{"jitter", "xfetch"} {
		code, stdout, stderr := bench(ctx, command)
		if code != exitInterrupted || stdout != "" {
			t.Errorf("%s: exit code %d, stdout %q", command, code, stdout)
		}
		wantOneLine(t, stderr, "interrupted")
	}
}
