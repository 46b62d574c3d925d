package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// traceFile writes a trace and returns its name.
func traceFile(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func zipped(t *testing.T, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// looped is a trace that goes round over so many keys.
func looped(keys, requests int) string {
	var b strings.Builder
	for i := range requests {
		fmt.Fprintf(&b, "key-%d\n", i*i%keys)
	}
	return b.String()
}

func parseTrace(t *testing.T, text string) *traceReport {
	t.Helper()
	r := new(traceReport)
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return r
}

// rowsText tells rows in short.
func rowsText(rows []traceRow) string {
	var all []string
	for _, r := range rows {
		all = append(all, fmt.Sprintf("%s@%s:%d/%d", r.Policy, r.size(), r.Hits, r.Requests))
	}
	return strings.Join(all, " ")
}

func TestTraceRows(t *testing.T) {
	file := traceFile(t, "keys.txt", "a\nb\na\nb\na\nc\na\nb\n")
	sized := traceFile(t, "sized.trace", "1 a 10\n2 b 20\n3 a 10\n4 c 30\n5 a 10\n")
	for _, test := range []struct {
		args   []string
		want   string
		stderr string // what must be in it; empty: nothing is
	}{
		{[]string{"--policies", "lru", "--sizes", "1,2", file},
			"opt@1:3/8 lru@1:0/8 lru-sharded@1:0/8 opt@2:5/8 lru@2:4/8 lru-sharded@2:4/8", ""},
		{[]string{"--policies", "opt", "--sizes", "100%,34%", file}, "opt@3:5/8 opt@1:3/8", ""},
		{[]string{"--policies", "opt,2q-sharded", "--sizes", "3", file}, "opt@3:5/8 2q-sharded@3:5/8", ""},
		{[]string{"--tiers", "near:1,far:2:lru", file}, "opt@3:5/8 near:lru+far:lru@3:4/8", ""},
		{[]string{"--tiers", "l1:1", "--sizes", "3", "--policies", "arc", file}, "opt@3:5/8 arc@3:4/8 opt@1:3/8 l1:lru@1:0/8", ""},
		{[]string{"--sizes", "1KiB", sized}, "opt@1KiB:2/5 tinylfu@1KiB:2/5 w-tinylfu@1KiB:2/5",
			sized + ": lru, lru-sharded, 2q, arc, sieve: bounded by entries, and not replayed at sizes in bytes"},
		{[]string{"--sizes", "1KiB,3", "--policies", "tinylfu,sieve", sized}, "opt@1KiB:2/5 tinylfu@1KiB:2/5 opt@3:2/5 tinylfu@3:2/5 sieve@3:2/5",
			sized + ": sieve: bounded by entries"},
		{[]string{"--sizes", "1KiB", "--policies", "tinylfu,w-tinylfu", sized}, "opt@1KiB:2/5 tinylfu@1KiB:2/5 w-tinylfu@1KiB:2/5", ""},
		{[]string{"--sizes", "1KiB", "--policies", "lru,tinylfu", sized}, "opt@1KiB:2/5 tinylfu@1KiB:2/5",
			sized + ": lru, lru-sharded: bounded by entries"},
		{[]string{"--sizes", "1MB,1", "--policies", "opt", file, sized}, "opt@1:3/8 opt@1MB:2/5 opt@1:2/5",
			file + ": the trace has no sizes of objects"},
	} {
		code, stdout, stderr := bench(t.Context(), append([]string{"trace", "--json", "-"}, test.args...)...)
		if code != exitOK || test.stderr == "" && stderr != "" {
			t.Errorf("%v: exit code %d, stderr %q", test.args, code, stderr)
			continue
		}
		if test.stderr != "" {
			wantOneLine(t, stderr, test.stderr)
		}
		if got := rowsText(parseTrace(t, stdout).Rows); got != test.want {
			t.Errorf("%v:\ngot  %s\nwant %s", test.args, got, test.want)
		}
	}
}

// What a trace does not say is null, and what it says is a share of that.
func TestTraceRatios(t *testing.T) {
	for _, test := range []struct {
		name, input string
		want        string // of the bound's row
	}{
		{"x.txt", "a\na\n", `"read_hits":null,"read_hit_ratio":null,"byte_hit_ratio":null,"cost_hit_ratio":null`},
		{"x.trace", "1 a 10\n2 b 20\n3 a 10\n", `"read_hits":null,"read_hit_ratio":null,"byte_hit_ratio":0.25,"cost_hit_ratio":null`},
		{"x.trace", "1 a 0\n2 a 0\n", `"read_hits":null,"read_hit_ratio":null,"byte_hit_ratio":null,"cost_hit_ratio":null`},
		{"x", "l 0x1 1 1 10\ns 0x2 1 1 20\nl 0x1 1 1 10\n", `"read_hits":1,"read_hit_ratio":0.5,"byte_hit_ratio":null,"cost_hit_ratio":0.25`},
	} {
		code, stdout, stderr := bench(t.Context(), "trace", "--json", "-", "--sizes", "5", "--policies", "opt", traceFile(t, test.name, test.input))
		if code != exitOK {
			t.Errorf("%q: exit code %d, stderr %q", test.input, code, stderr)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(stdout)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(compact.String(), test.want) {
			t.Errorf("%q: want %s in %s", test.input, test.want, &compact)
		}
	}
}

func TestTraceTable(t *testing.T) {
	code, stdout, stderr := bench(t.Context(), "trace", "--tiers", "l1:1,l2:2:lru", "--sizes", "2", "--policies", "2q", traceFile(t, "x", "l 0x1 1 1 10\ns 0x2 1 1 20\nl 0x1 1 1 10\nbad\n"))
	if code != exitOK {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"x  address: 3 requests of 2 keys, 1 of them writes", "! 1 malformed", "reads %", "cost %", "l1:lru+l2:lru", "l1 0.00, l2 33.33"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("want %q in the table:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "bytes %  ") {
		t.Errorf("a column of nothing:\n%s", stdout)
	}
}

// TestTraceMalformed: lines that are left out are told with their numbers, the first of
// them one by one, and counted; the run does not fail.
func TestTraceMalformed(t *testing.T) {
	file := traceFile(t, "x.lirs", "1\nx\n2\n"+strings.Repeat("-1\n", 9)+"1\n")
	code, stdout, stderr := bench(t.Context(), "trace", "--json", "-", "--format", "lirs", "--sizes", "9", "--policies", "opt", file)
	if code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{file + `: line 2: block number "x"`, ": line 7: ", "and 5 more; 10 malformed in all"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("want %q in %q", want, stderr)
		}
	}
	r := parseTrace(t, stdout)
	if got := rowsText(r.Rows); got != "opt@9:1/3" || r.Rows[0].Malformed != 10 {
		t.Errorf("rows: %s, %d malformed", got, r.Rows[0].Malformed)
	}
	if got := r.Environment.Traces[0]; got.Malformed != 10 || len(got.FirstMalformed) != mostFaults || got.FirstMalformed[1] == "" {
		t.Errorf("trace: %+v", got)
	}
}

// TestTraceCutArchive: what could be read is replayed, and the exit code says that it is
// not all. Other traces are not touched by it.
func TestTraceCutArchive(t *testing.T) {
	packed := zipped(t, looped(977, 5000))
	cut := traceFile(t, "cut.gz", packed[:len(packed)/2])
	stub := traceFile(t, "stub.gz", packed[:5])
	empty := traceFile(t, "empty.csv", "")
	good := traceFile(t, "good.gz", packed)
	code, stdout, stderr := bench(t.Context(), "trace", "--json", "-", "--sizes", "9", "--policies", "opt", stub, cut, empty, good)
	if code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	wantOneLine(t, stderr, stub+": cut off", cut+": after ", "requests: cut off", empty+": no requests")
	r := parseTrace(t, stdout)
	if len(r.Rows) != 2 || r.Rows[0].Requests < 100 || r.Rows[0].Requests >= 5000 || r.Rows[1].Requests != 5000 {
		t.Errorf("rows: %s", rowsText(r.Rows))
	}
	if r.Environment.Complete {
		t.Error("complete")
	}
}

func TestTraceStdin(t *testing.T) {
	for _, format := range []string{"", "plain"} {
		args := []string{"trace", "--json", "-", "--sizes", "9", "--policies", "opt", "-"}
		if format != "" {
			args = append(args, "--format", format)
		}
		code, stdout, stderr := benchOf(t.Context(), strings.NewReader(zipped(t, "a\nb\na\n")), args...)
		if code != exitOK {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
		if r := parseTrace(t, stdout); rowsText(r.Rows) != "opt@9:1/3" || r.Rows[0].Trace != "<stdin>" {
			t.Errorf("rows: %+v", r.Rows)
		}
	}
}

// What is no trace ends as a wrong flag does, from stdin too, unless there is another that is one.
func TestTraceOfNothingKnown(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
	}{
		{[]string{"-"}, exitUsage},
		{[]string{"-", traceFile(t, "x.txt", "a\n")}, exitFailure},
	} {
		code, stdout, stderr := benchOf(t.Context(), strings.NewReader("two words\nand more of them\n"), append([]string{"trace", "--sizes", "9"}, test.args...)...)
		if code != test.code || (code == exitUsage) != (stdout == "") {
			t.Errorf("%v: exit code %d, stdout %q", test.args, code, stdout)
		}
		wantOneLine(t, stderr, "<stdin>: is text, in a format that cannot be told")
	}
}

// interrupting ends the run when so much was read.
type interrupting struct {
	io.Reader
	left int
	end  context.CancelFunc
}

func (r *interrupting) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.left -= n; r.left <= 0 {
		r.end()
	}
	return n, err
}

// TestTraceInterrupted: what is done when Ctrl-C comes is printed.
func TestTraceInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdin := &interrupting{strings.NewReader(looped(977, 500_000)), 2_000_000, cancel}
	code, stdout, stderr := benchOf(ctx, stdin, "trace", "--json", "-", "--sizes", "9", "--policies", "lru", traceFile(t, "first.txt", "a\na\n"), "-")
	if code != exitInterrupted {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	wantOneLine(t, stderr, "interrupted")
	r := parseTrace(t, stdout)
	if got := rowsText(r.Rows); got != "opt@9:1/2 lru@9:1/2 lru-sharded@9:1/2" || r.Environment.Complete {
		t.Errorf("rows: %s, complete: %v", got, r.Environment.Complete)
	}
}

func TestTraceFlags(t *testing.T) {
	file := traceFile(t, "x.txt", "a\n")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "no trace"},
		{[]string{""}, "is empty"},
		{[]string{file, file}, "named twice"},
		{[]string{file + ".none"}, "no such file"},
		{[]string{filepath.Dir(file)}, "is a directory"},
		{[]string{traceFile(t, "x.bin", "\x7f\x12\x01\x93\x02\x03\x04\x99")}, "--format"},
		{[]string{file, "--format", "csv"}, "want one of plain, lirs"},
		{[]string{file, "--format", ""}, "--format is empty"},
		{[]string{file, "--policies", "fifo"}, `there is no "fifo": want some of lru, 2q`},
		{[]string{file, "--policies", "tinylfu-sharded"}, "there is no"},
		{[]string{file, "--policies", "lru,lru"}, "named twice"},
		{[]string{file, "--policies", ""}, "--policies is empty"},
		{[]string{file, "--sizes", "0"}, "--sizes: 0: want a whole number"},
		{[]string{file, "--sizes", "1.5"}, "whole number"},
		{[]string{file, "--sizes", "-1"}, "want entries such as 500"},
		{[]string{file, "--sizes", "101%"}, "up to 100%"},
		{[]string{file, "--sizes", "5XB"}, `there is no unit "XB"`},
		{[]string{file, "--sizes", "99999999999"}, "whole number"},
		{[]string{file, "--sizes", "1MB", "--policies", "lru,arc"}, "lru, arc: bounded by entries"},
		{[]string{file, "--tiers", "l1"}, "want NAME:SIZE"},
		{[]string{file, "--tiers", ":5"}, "want NAME:SIZE"},
		{[]string{file, "--tiers", "l1:x"}, "want entries such as 500"},
		{[]string{file, "--tiers", "l1:5:fifo"}, `there is no policy "fifo"`},
		{[]string{file, "--tiers", "l1:5,l1:6"}, "named twice"},
		{[]string{file, "--tiers", "l1:5MB:lru"}, "bounded by entries"},
		{[]string{file, "--tiers", "l1:5,l2:6MB"}, "same unit"},
		{[]string{file, "--json", ""}, "--json is empty"},
	} {
		code, stdout, stderr := bench(t.Context(), append([]string{"trace"}, test.args...)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%v: exit code %d, stdout %q", test.args, code, stdout)
		}
		wantOneLine(t, stderr, test.want)
	}
}

// What a trace cannot be put into is told before anything begins, as a wrong flag is.
func TestTraceWithoutTemporaryFiles(t *testing.T) {
	file := traceFile(t, "x.txt", "a\n")
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	code, stdout, stderr := bench(t.Context(), "trace", file)
	if code != exitUsage || stdout != "" {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
	wantOneLine(t, stderr, "$TMPDIR")
}

// A trace that is not of the format that was told says what is wrong with it, and what it
// looks like.
func TestTraceOfAnotherFormat(t *testing.T) {
	twitter := traceFile(t, "x.csv", "7,a,2,512,1,get,0\n8,b,2,512,1,get,0\n")
	keys := traceFile(t, "keys", strings.Repeat("key-1\nkey-22\n", 100))
	binary := traceFile(t, "x.bin", strings.Repeat("\x00\x00\x00\x05\x00\x00\x01\x05\xff\xff\xff\x05", 100))
	for _, test := range []struct {
		file, format string
		code         int
		want         []string
	}{
		{twitter, "lirs", exitFailure, []string{twitter + `: line 1: block number "7,a`, "no requests in it: all 2 lines are not of the format lirs, the first is line 1", "it looks like the format twitter"}},
		{twitter, "cachelib", exitUsage, []string{"line 1: not CacheLib's header", "it looks like the format twitter"}},
		{binary, "arc", exitFailure, []string{"line 1: a NUL byte", "it looks like the format cache2k"}},
		{binary, "cachelib", exitUsage, []string{"line 1: ", "it looks like the format cache2k"}},
		{keys, "corda", exitOK, []string{"is read as corda, as it was told, and looks like the format plain"}},
		{twitter, "plain", exitOK, []string{"is read as plain, as it was told, and looks like the format twitter"}},
		{keys, "plain", exitOK, nil},
		{traceFile(t, "short", "abc"), "corda", exitFailure, []string{"all 1 records are not of the format corda, the first is record 1: the trace ends after 3 of its 8 bytes"}},
		{traceFile(t, "empty", ""), "twitter", exitFailure, []string{"no requests in it: it is empty"}},
		{traceFile(t, "header.csv", "key,op,op_count\n"), "cachelib", exitFailure, []string{"no requests in it"}},
	} {
		code, _, stderr := bench(t.Context(), "trace", "--json", "-", "--sizes", "9", "--policies", "opt", "--format", test.format, test.file)
		if code != test.code || len(test.want) == 0 && stderr != "" {
			t.Errorf("%s as %s: exit code %d, want %d; stderr %q", test.file, test.format, code, test.code, stderr)
		}
		for _, want := range test.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s as %s: want %q in %q", test.file, test.format, want, stderr)
			}
		}
	}
}

// TestTraceViolations: rows that no cache could have are told, and fail the run.
func TestTraceViolations(t *testing.T) {
	bounds := map[traceBound]int64{{size: 5}: 7}
	for _, test := range []struct {
		row  traceRow
		want string
	}{
		{traceRow{Trace: "x", Policy: "lru", Size: 5, Hits: 7, Tiers: []traceTierRow{{Policy: "lru", Size: 5, Held: 5}}}, ""},
		{traceRow{Trace: "x", Policy: "lru", Size: 5, Hits: 8}, "x: lru of 5 had 8 hits, and no cache of that size can have more than 7"},
		{traceRow{Trace: "x", Policy: "lru", Size: 5, Unit: "entries", Tiers: []traceTierRow{{Policy: "lru", Size: 5, Held: 6}}}, "x: lru of 5 entries held 6"},
		{traceRow{Trace: "x", Policy: "lru", Size: 6, Hits: 8}, ""},
	} {
		if got := strings.Join(test.row.violations(bounds), "; "); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestTraceSizes(t *testing.T) {
	for text, want := range map[string]string{
		"500": "500", "10_000": "10000", "2MB": "2MB", "1 GiB": "1GiB", "1.5KiB": "1536B", "2048kib": "2MiB", "12.5%": "125", "0.01%": "1", "7B": "7B",
	} {
		s, err := parseTraceSize(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		r := traceRow{Size: s.of(1000)}
		if s.bytes {
			r.Unit = "bytes"
		}
		if got := r.size(); got != want {
			t.Errorf("%s = %s, want %s", text, got, want)
		}
	}
}

// opt has the most hits that there can be, which need not be those of the most reads, bytes
// or costs: the page says of none but the hits that nothing is better.
func TestPageBoundsHitsAlone(t *testing.T) {
	some := func(ratio float64) *float64 { return &ratio }
	r := traceReport{Rows: []traceRow{
		{Trace: "x", Policy: optimum, Size: 1, Unit: "entries", HitRatio: 0.5, ReadHitRatio: some(0.5), ByteHitRatio: some(0.5), CostHitRatio: some(0.5)},
		{Trace: "x", Policy: "tinylfu", Size: 1, Unit: "entries", HitRatio: 0.49, ReadHitRatio: some(0.9), ByteHitRatio: some(0.9), CostHitRatio: some(0.9)},
		{Trace: "x", Policy: optimum, Size: 9, Unit: "bytes", HitRatio: 0.5},
		{Trace: "x", Policy: "tinylfu", Size: 9, Unit: "bytes", HitRatio: 0.49, ReadHitRatio: some(0.9), ByteHitRatio: some(0.9), CostHitRatio: some(0.9)},
	}}
	const bound, most, none = "no cache of its size can be below it", "others may be below it here", ""
	var got []string
	for _, f := range r.traceSection(&traceOfRows{Trace: "x"}).Figures {
		says := none
		switch {
		case strings.Contains(f.Text, bound):
			says = bound
		case strings.Contains(f.Text, most):
			says = most
		case strings.Contains(f.Text, optimum):
			t.Errorf("%s: %q of a bound that is not there", f.Title, f.Text)
		}
		got = append(got, says)
	}
	if want := []string{bound, most, most, most, bound, none, none, none}; !slices.Equal(got, want) {
		t.Errorf("figures say\ngot  %q\nwant %q", got, want)
	}
}
