package main

import (
	"strings"
	"testing"

	"github.com/terracecache/terrace/bench/internal/trace"
)

// A comparison tells malformed lines as trace does, and of an archive that is cut off it
// replays what could be read.
func TestCompareCutArchive(t *testing.T) {
	packed := zipped(t, "a key\nanother key\n"+looped(977, 50_000))
	cut := traceFile(t, "cut.gz", packed[:len(packed)*9/10])
	stub := traceFile(t, "stub.gz", packed[:5])
	args := append([]string{"--combinations", "l1", "--policies", "fixed", "--json", "-"}, quick...)
	code, stdout, stderr := bench(t.Context(), append(args, "--trace", cut)...)
	if code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	for _, want := range []string{cut + ": line 1: white space", cut + ": line 2: white space", "requests: cut off"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("want %q in %q", want, stderr)
		}
	}
	rep := reportOf(t, stdout)
	if len(rep.Rows) != 1 || rep.Rows[0].Requests != 200 || rep.Environment.Complete {
		t.Errorf("complete: %v, rows: %+v", rep.Environment.Complete, rep.Rows)
	}
	if n := rep.Environment.Workload.Malformed; n == nil || *n != 2 {
		t.Errorf("malformed: %v, want 2", n)
	}
	if notes := strings.Join(rep.Environment.Notes, "; "); !strings.Contains(notes, "2 lines") || !strings.Contains(notes, "the first: line 1") || !strings.Contains(notes, "cut off") {
		t.Errorf("notes: %s", notes)
	}

	code, stdout, stderr = bench(t.Context(), append(args, "--trace", stub)...)
	if code != exitFailure || stdout != "" {
		t.Errorf("of nothing: exit code %d, stdout %q", code, stdout)
	}
	wantOneLine(t, stderr, "cut off")
}

// What a comparison cannot begin with says what is wrong with the file.
func TestCompareOfNoRequests(t *testing.T) {
	empty, text := traceFile(t, "empty.csv", ""), traceFile(t, "x.csv", "7,a,2,512,1,get,0\n")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{empty}, []string{"no requests in it: it is empty"}},
		{[]string{empty, "--speed", "1"}, []string{"no requests in it: it is empty"}},
		{[]string{text, "--format", "sized", "--speed", "1"}, []string{text + ": line 1: 1 fields", "all 1 lines are not of the format sized, the first is line 1: 1 fields: want sequence number", "it looks like the format twitter"}},
		{[]string{t.TempDir()}, []string{"is a directory"}},
	} {
		code, stdout, stderr := bench(t.Context(), append([]string{"--combinations", "l1", "--trace"}, test.args...)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%v: exit code %d, stdout %q", test.args, code, stdout)
		}
		for _, want := range test.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%v: want %q in %q", test.args, want, stderr)
			}
		}
	}
}

// A trace may have its first write where more requests were read than are wanted at least.
func TestLateWrite(t *testing.T) {
	b := workloadBuilder{w: new(workload), indexes: make(map[uint64]uint32), n: 1}
	for _, op := range []trace.Op{trace.Read, trace.Read, trace.Read, trace.Write} {
		if err := b.add(&trace.Request{Op: op}); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.w.ops; len(got) != 4 || got[2] != opRead || got[3] != opWrite {
		t.Errorf("got %v", got)
	}
}
