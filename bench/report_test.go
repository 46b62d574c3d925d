package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// parsed is a report as another program reads it.
type parsed struct {
	Environment map[string]any   `json:"environment"`
	Rows        []map[string]any `json:"rows"`
}

func parse(t *testing.T, text string) parsed {
	t.Helper()
	var p parsed
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		t.Fatalf("not a report: %v\n%s", err, text)
	}
	if d.More() {
		t.Error("something comes after the document")
	}
	return p
}

func keysOf(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

var rowFields = []string{
	"combination", "heap_bytes_per_entry", "hit_ratio", "hits", "latency_distribution", "latency_seconds", "misses", "oldest_seconds",
	"origin_calls", "origin_calls_over", "origin_peak", "policy", "requests", "slow", "stale", "staleness_distribution", "throughput_per_second",
}

func TestJSONOnStdoutIsAllThatIsThere(t *testing.T) {
	args := append([]string{"--combinations", "l1,l1+l2+l3", "--json", "-"}, quick...)
	code, stdout, stderr := bench(t.Context(), args...)
	if code != exitOK || stderr != "" {
		t.Fatalf("got exit code %d, stderr %q", code, stderr)
	}
	p := parse(t, stdout)
	if p.Environment["complete"] != true {
		t.Errorf("environment: got %v", p.Environment)
	}
	var names []string
	for _, r := range p.Rows {
		checkRow(t, r, 200)
		names = append(names, r["combination"].(string)+" "+r["policy"].(string))
	}
	want := []string{"l1 fixed", "l1 swr", "l1 xfetch", "l1+l2+l3 fixed", "l1+l2+l3 swr", "l1+l2+l3 xfetch"}
	if !slices.Equal(names, want) {
		t.Errorf("rows: got %v, want %v", names, want)
	}
}

// checkRow checks a row's shape, and that its figures agree with each other.
func checkRow(t *testing.T, r map[string]any, requests float64) {
	t.Helper()
	if got := keysOf(r); !slices.Equal(got, rowFields) {
		t.Errorf("fields: got %v, want %v", got, rowFields)
	}
	name := r["combination"].(string)
	if got := keysOf(r["latency_seconds"].(map[string]any)); !slices.Equal(got, []string{"max", "p50", "p90", "p99", "p999"}) {
		t.Errorf("%s: latency_seconds has %v", name, got)
	}
	hits := r["hits"].(map[string]any)
	tiers, _, _ := strings.Cut(name, "(")
	if got := strings.Join(keysOf(hits), "+"); got != tiers {
		t.Errorf("%s: hits has %v", name, got)
	}
	sum := 0.0
	for _, n := range hits {
		sum += n.(float64)
	}
	if r["requests"] != requests || sum+r["misses"].(float64) != requests || r["hit_ratio"] != sum/requests {
		t.Errorf("%s: want %v requests: %v", name, requests, r)
	}
	calls, peak := r["origin_calls"].(float64), r["origin_peak"].(float64)
	if calls < 1 || peak < 1 || r["oldest_seconds"].(float64) <= 0 || r["throughput_per_second"].(float64) <= 0 {
		t.Errorf("%s: figures are missing: %v", name, r)
	}
	if heap := r["heap_bytes_per_entry"].(float64); strings.HasPrefix(name, "l1") && (heap < 256 || heap > 4096) {
		t.Errorf("%s: an entry of 256 bytes takes %v of heap", name, heap)
	}
}

func TestJSONFileIsReplacedAsAWhole(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "report.json")
	if err := os.WriteFile(name, []byte(strings.Repeat("old ", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--combinations", "l1", "--policies", "fixed", "--json", link}, quick...)
	code, stdout, stderr := bench(t.Context(), args...)
	if code != exitOK || !strings.Contains(stdout, "heap/entry") || stderr != "" {
		t.Fatalf("got exit code %d, %q, %q", code, stdout, stderr)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if p := parse(t, string(text)); len(p.Rows) != 1 {
		t.Errorf("got %d rows", len(p.Rows))
	}
	if info, _ := os.Stat(name); info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v, want that of before", info.Mode())
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("files are left: %v", files)
	}
}

func TestJSONToADeviceDoesNotReplaceIt(t *testing.T) {
	args := append([]string{"--combinations", "l1", "--policies", "fixed", "--json", os.DevNull}, quick...)
	if code, _, stderr := bench(t.Context(), args...); code != exitOK {
		t.Fatalf("got exit code %d, %q", code, stderr)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Fatalf("%s is now %v, %v", os.DevNull, info.Mode(), err)
	}
}

func TestTable(t *testing.T) {
	code, stdout, stderr := bench(t.Context(), quick...)
	if code != exitOK || stderr != "" {
		t.Fatalf("got exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"EMBEDDED", "not those of a real server", "open loop", "closed loop", "l1+l2+l3  xfetch", "heap/entry"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	for line := range strings.Lines(stdout) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 140 {
			t.Errorf("%d columns wide: %s", n, line)
		}
	}
}

func TestShort(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0ns", 1e-9: "1ns", 1.5e-6: "1.50µs", 0.0123: "12.3ms", 0.9996: "1000ms", 2: "2.00s", 250: "250s"} {
		if got := short(seconds); got != want {
			t.Errorf("short(%v): got %q, want %q", seconds, got, want)
		}
	}
}
