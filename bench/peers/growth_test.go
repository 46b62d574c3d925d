package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGrowth(t *testing.T) {
	dir := t.TempDir()
	file, plots := filepath.Join(dir, "rows.json"), filepath.Join(dir, "plots")
	code, stdout, stderr := runPeers(t.Context(), "growth", "--rounds", "2", "--seconds", "0.0005", "--most-keys", "1000", "--json", file, "--plots", plots)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	rows, err := readRows(file)
	if err != nil {
		t.Fatal(err)
	}
	steps := make(map[string]map[float64]bool)
	for _, r := range rows {
		if r.X == nil || r.NsPerOp == nil || *r.NsMin <= 0 || *r.NsPerOp < *r.NsMin || *r.NsMax < *r.NsPerOp {
			t.Errorf("a row without its figures: %+v", r)
			continue
		}
		if steps[r.Group] == nil {
			steps[r.Group] = make(map[float64]bool)
		}
		steps[r.Group][*r.X] = true
	}
	for group, want := range map[string]int{
		"growth-keys": 1, "growth-goroutines": 5, "growth-mix": 5, "growth-tiers": 4, "growth-tiers-redis": 4, "growth-values": 4,
	} {
		if got := len(steps[group]); got != want {
			t.Errorf("%s: %d steps, want %d", group, got, want)
		}
		if !strings.Contains(stdout, "\n"+group+": ") {
			t.Errorf("no table of %s", group)
		}
	}
	for _, c := range charts {
		wantPicture(t, filepath.Join(plots, c.file))
	}

	// The rows can be shown again, without being measured, and make the same picture.
	again := filepath.Join(dir, "again")
	code, stdout, stderr = runPeers(t.Context(), "growth", "--rows", file, "--plots", again, "--markdown")
	if code != exitOK || !strings.Contains(stdout, "\n| tiers | 1 | 2 | 3 | 4 |\n|---|---:|---:|---:|---:|\n| terrace-hit-first | ") {
		t.Errorf("exit code %d, stdout %s, stderr %s", code, stdout, stderr)
	}
	for _, c := range charts {
		first, _ := os.ReadFile(filepath.Join(plots, c.file))
		second, _ := os.ReadFile(filepath.Join(again, c.file))
		if len(first) == 0 || !bytes.Equal(first, second) {
			t.Errorf("%s is another picture of the same rows", c.file)
		}
	}
}

func wantPicture(t *testing.T, name string) {
	t.Helper()
	svg, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
		return
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
	}
	for _, bad := range []string{"NaN", "Inf"} {
		if bytes.Contains(svg, []byte(bad)) {
			t.Errorf("%s contains %s", name, bad)
		}
	}
}

func TestTablesOfADocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# Doc\n\n<!-- one -->\n\ntext\n\n<!-- two -->\n\n| old |\n|---|\n| table |\n\n![plot](two.svg)\n")
	for range 2 { // again changes nothing
		for name, table := range map[string]string{"one": "\n| 1 |\n", "two": "| 2 |\n"} {
			if err := replaceTable(file, name, table); err != nil {
				t.Fatal(err)
			}
		}
		got, _ := os.ReadFile(file)
		if want := "# Doc\n\n<!-- one -->\n\n| 1 |\n\ntext\n\n<!-- two -->\n\n| 2 |\n\n![plot](two.svg)\n"; string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := replaceTable(file, "three", "| 3 |\n"); err == nil || !strings.Contains(err.Error(), "<!-- three -->") {
		t.Errorf("without a place for it: got %v", err)
	}
}

func TestWrongInputOfGrowth(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ args, says string }{
		{"stray", `"stray"`},
		{"--groups hit-hot", "--groups"},
		{"--only threads", `"threads"`},
		{"--only=", "--only"},
		{"--rounds 0", "--rounds 0"},
		{"--seconds 0", "--seconds 0"},
		{"--most-keys 10", "--most-keys 10"},
		{"--plots=", "--plots"},
		{"--plots " + broken, "--plots"},
		{"--json " + dir, "--json"},
		{"--rows " + dir + "/missing.json", "no such file"},
		{"--rows " + broken, "--rows"},
		{"--doc " + dir + "/missing.md", "no such file"},
		{"--only values --redis 127.0.0.1:1", "127.0.0.1:1"},
	} {
		code, stdout, stderr := runPeers(t.Context(), append([]string{"growth"}, strings.Fields(test.args)...)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%s: exit code %d, stdout %q; want %d and nothing", test.args, code, stdout, exitUsage)
		}
		wantOneLine(t, stderr, test.says)
	}
}

func TestGrowthWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	code, stdout, stderr := runPeers(t.Context(), "growth", "--rounds", "1", "--seconds", "0.0005", "--only", "values", "--json", "-")
	if code != exitOK || !strings.Contains(stderr, "! left out what needs redis-server") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var rows []row
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil || len(rows) != len(growthOfValues) {
		t.Errorf("%d rows, want those in memory alone, %d (%v)", len(rows), len(growthOfValues), err)
	}
}

func TestTicks(t *testing.T) {
	labels := func(low, high float64) string {
		var all []string
		for _, tick := range decades(high/low).Ticks(low, high) {
			if tick.Label != "" {
				all = append(all, tick.Label)
			}
		}
		return strings.Join(all, ", ")
	}
	if got, want := labels(roundDown(23), roundUp(430)), "20 ns, 50 ns, 100 ns, 200 ns, 500 ns"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := labels(roundDown(100), roundUp(1_000_001)), "100 ns, 1 µs, 10 µs, 100 µs, 1 ms"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSpread(t *testing.T) {
	r := row{NsPerOp: figure(48_123, 0), NsMin: figure(9_500, 0), NsMax: figure(120_000, 0)}
	if got, want := r.spread(), "48.1 µs (9.5–120)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
