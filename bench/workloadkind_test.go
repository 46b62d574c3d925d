package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"github.com/terracecache/terrace/tier"
)

// settingsOf are those that the flags make.
func settingsOf(t *testing.T, args ...string) *settings {
	t.Helper()
	s := new(settings)
	f := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	s.register(f)
	if err := errors.Join(f.Parse(args), s.fromFlags(f)); err != nil {
		t.Fatal(err)
	}
	return s
}

func workloadOf(t *testing.T, args ...string) *workload {
	t.Helper()
	w, err := settingsOf(t, args...).newWorkload(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// shareOf returns which share of the operations from and to is for a key that is wanted.
func shareOf(w *workload, from, to int, wanted func(i int, key uint32) bool) float64 {
	n := 0
	for i := from; i < to; i++ {
		if k, _ := w.key(i); wanted(i, k) {
			n++
		}
	}
	return float64(n) / float64(to-from)
}

func wantShare(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s: got %.4f, want %.4f ± %v", what, got, want, within)
	}
}

func TestWorkloadKinds(t *testing.T) {
	const n = 1 << 20
	w := workloadOf(t, "--workload", "uniform", "--keys", "10")
	wantShare(t, "uniform, key 3", shareOf(w, 0, n, func(_ int, k uint32) bool { return k == 3 }), 0.1, 0.005)

	w = workloadOf(t, "--workload", "scan", "--keys", "10")
	wantShare(t, "scan, in order", shareOf(w, 0, n, func(i int, k uint32) bool { return int(k) == i%10 }), 1, 0)

	w = workloadOf(t, "--workload", "burst", "--burst", "20")
	wantShare(t, "burst, of the key before", shareOf(w, 1, n, func(i int, k uint32) bool { before, _ := w.key(i - 1); return i%20 == 0 || k == before }), 1, 0)
	wantShare(t, "burst, most popular", shareOf(w, 0, n, func(_ int, k uint32) bool { return k == 0 }), 1/6.57, 0.02)
	if w.batch != 20 {
		t.Errorf("burst: %d at once, want 20", w.batch)
	}

	w = workloadOf(t, "--workload", "hot-key", "--skew", "0")
	wantShare(t, "hot-key, hot key", shareOf(w, 0, n, func(_ int, k uint32) bool { return k == 0 }), 0.5+0.5/400, 0.005)

	// 5,000 reads of the open loop, so popularity moves on every 1,000, by 80 keys.
	w = workloadOf(t, "--workload", "shifting", "--skew", "3")
	for at := range 6 {
		wantShare(t, fmt.Sprintf("shifting, key of part %d", at),
			shareOf(w, 1000*at, 1000*(at+1), func(_ int, k uint32) bool { return int(k) == 80*at%400 }), 1/1.202, 0.06)
	}

	w = workloadOf(t, "--workload", "mixed")
	wantShare(t, "mixed, writes", shareOf(w, 0, n, func(i int, _ uint32) bool { return w.op(i) == opWrite }), 0.1, 0.005)
	wantShare(t, "mixed, deletes", shareOf(w, 0, n, func(i int, _ uint32) bool { return w.op(i) == opDelete }), 0.02, 0.002)
	w = workloadOf(t, "--workload", "mixed", "--writes", "0", "--deletes", "0.5")
	wantShare(t, "deletes alone", shareOf(w, 0, n, func(i int, _ uint32) bool { return w.op(i) == opDelete }), 0.5, 0.005)
	if w = workloadOf(t); w.op(5) != opRead || w.batch != 0 {
		t.Errorf("zipf: %+v", w.op(5))
	}
}

// Reads of a burst are due at one time, and the mean rate is kept.
func TestPaceOfBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(100, 1000, time.Sleep)
		p.batch = 25
		openLoop(t.Context(), p, 30, func(i int, due tier.Instant) {
			if got, want := due.Sub(p.start), time.Duration(i/25*25)*time.Millisecond; got != want {
				t.Errorf("read %d: due at %v, want %v", i, got, want)
			}
			if late := tier.Now().Sub(due); late != 0 {
				t.Errorf("read %d began %v late", i, late)
			}
		})
	})
}

func TestTraceWorkload(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	w := workloadOf(t, "--trace", file("plain.txt", "a\nb\na\nc\n"))
	if len(w.keys) != 3 || len(w.sequence) != 4 || w.sequence[0] != w.sequence[2] || w.sequence[1] == w.sequence[3] || w.ops != nil {
		t.Errorf("got %+v", w)
	}
	twitter := file("cluster1.csv", "0,k1,2,10,1,get,0\n0,k2,2,10,1,set,0\n1,k1,2,10,1,delete,0\nnonsense\n")
	w = workloadOf(t, "--trace", twitter)
	if len(w.sequence) != 3 || w.op(0) != opRead || w.op(1) != opWrite || w.op(2) != opDelete || !slices.ContainsFunc(w.notes, func(n string) bool { return strings.Contains(n, "1 lines") }) {
		t.Errorf("got %+v", w)
	}

	args := append([]string{"--combinations", "l1", "--policies", "fixed", "--trace", twitter, "--json", "-"}, quick...)
	code, stdout, stderr := bench(t.Context(), args...)
	if code != exitOK {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	wantOneLine(t, stderr, twitter+": line 4: 1 fields")
	rep := reportOf(t, stdout)
	if r := rep.Rows[0]; r.Requests+r.Writes+r.Deletes != 200 || r.Writes < 50 || r.Deletes < 50 || r.Failed != 0 {
		t.Errorf("got %+v", r)
	}
	if e := rep.Environment; e.Workload.Kind != "trace" || e.Workload.Keys != 2 || len(e.Notes) == 0 {
		t.Errorf("got %+v", e)
	}

	for _, c := range []struct{ file, want string }{{file("empty.txt", ""), "--trace"}, {filepath.Join(dir, "none"), "--trace"}} {
		code, stdout, stderr := bench(t.Context(), "--combinations", "l1", "--trace", c.file)
		if code != exitUsage || stdout != "" {
			t.Errorf("%s: exit code %d, stdout %q", c.file, code, stdout)
		}
		wantOneLine(t, stderr, c.want)
	}
}

func TestMixedWorkloadAndGoroutines(t *testing.T) {
	args := append([]string{"--combinations", "l1", "--policies", "swr", "--workload", "mixed", "--goroutines", "1,3"}, quick...)
	stdout, rep := benchBoth(t, args...)
	if r := rep.Rows[0]; r.Writes == 0 || r.Requests+r.Writes+r.Deletes != 200 || len(r.Goroutines) != 2 || r.Goroutines[1].Goroutines != 3 || !(r.Goroutines[0].PerSecond > 0) {
		t.Errorf("got %+v", r)
	}
	if r := rep.Rows[0]; r.WriteLatency == nil || !(r.WriteLatency.P50 > 0) || r.DeleteLatency == nil || len(r.LatencyOver) == 0 {
		t.Errorf("latencies: got %+v", r)
	}
	for _, want := range []string{"10 % writes, 2 % deletes", "/s by 1", "/s by 3", "set p50", "del p99"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
}

// benchBoth returns the table and the report of one run.
func benchBoth(t *testing.T, args ...string) (table string, r report) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.json")
	code, table, stderr := bench(t.Context(), append(args, "--json", name)...)
	if code != exitOK || stderr != "" {
		t.Fatalf("%v: exit code %d, stderr %q", args, code, stderr)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return table, reportOf(t, string(text))
}

func TestWrongWorkloadsAndOrigins(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--workload pareto", `no "pareto"`},
		{"--burst 0", "--burst 0"},
		{"--writes -0.1", "--writes -0.1"},
		{"--writes NaN", "--writes NaN"},
		{"--writes 0.5 --deletes 0.5", "leave no reads"},
		{"--goroutines 0", "--goroutines 0"},
		{"--goroutines 2,2", "named twice"},
		{"--trace x --keys 5", "--keys: with --trace"},
		{"--trace=", "--trace is empty"},
		{"--origin=", "--origin is empty"},
		{"--origin slow", `no "slow"`},
		{"--origin-sigma 3", "--origin-sigma 3"},
		{"--origin-capacity 0", "--origin-capacity 0"},
		{"--origin-fails 1.5", "--origin-fails 1.5"},
		{"--stale-if-error -1s", "--stale-if-error -1s"},
		{"--origin ftp://host/x", `"ftp"`},
		{"--origin http:///x", "no host"},
		{"--origin http://u:secret%zz@h/", "malformed URL"},
		{"--origin http://127.0.0.1:1/x --combinations l1", "does not answer"},
		{"compare --config x.yaml --stale-if-error 1s", "lifetime.stale_if_error"},
	} {
		code, stdout, stderr := bench(t.Context(), strings.Fields(c.args)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%s: exit code %d, stdout %q", c.args, code, stdout)
		}
		wantOneLine(t, stderr, c.want)
		if strings.Contains(stderr, "secret") {
			t.Errorf("%s: a password in %q", c.args, stderr)
		}
	}
}

func reportOf(t *testing.T, text string) (r report) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return r
}
