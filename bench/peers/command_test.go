package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// quick are flags for a run that shows the shape and no figures.
var quick = []string{"--rounds", "1", "--seconds", "0.001", "--keys", fmt.Sprint(minKeys), "--entries", fmt.Sprint(minEntries)}

// fields are those of a row that are always there.
var fields = []string{
	"allocs_per_op", "bytes_per_entry", "goroutines", "group", "name",
	"ns_max", "ns_min", "ns_per_op", "ops_per_second", "version",
}

func TestJSON(t *testing.T) {
	code, stdout, stderr := runPeers(t.Context(), append(quick, "--json", "-", "--names", "terrace,otter,gomemcache,rueidis")...)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil {
		t.Fatalf("stdout is not one JSON array: %v", err)
	}
	identities := make(map[string]bool)
	groups := make(map[string]bool)
	for _, r := range rows {
		id := fmt.Sprint(r["group"], " ", r["name"], " ", r["goroutines"])
		if identities[id] {
			t.Errorf("%s is there twice", id)
		}
		identities[id] = true
		group := r["group"].(string)
		groups[group] = true

		want := fields
		if group == "beside" {
			want = append(slices.Clone(fields), "ratio")
			if name := r["name"].(string); !strings.HasSuffix(name, alone) && !strings.HasSuffix(name, apart) {
				want = append(want, "ratio_apart")
			}
			slices.Sort(want)
		}
		var got []string
		for field := range r {
			got = append(got, field)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got the fields %v, want %v", id, got, want)
		}
		figures := []string{"ns_per_op", "ns_min", "ns_max", "allocs_per_op", "ops_per_second"}
		switch group {
		case "memory":
			figures = []string{"bytes_per_entry"}
		case "stampede":
			figures = []string{"ns_per_op", "ns_min", "ns_max", "allocs_per_op", "bytes_per_entry"}
		}
		for _, field := range fields {
			switch v := r[field].(type) {
			case float64:
				if v < 0 || field != "goroutines" && !slices.Contains(figures, field) {
					t.Errorf("%s: %s: got %v", id, field, v)
				}
			case nil:
				if slices.Contains(figures, field) {
					t.Errorf("%s: %s is null", id, field)
				}
			}
		}
		if v := r["version"]; v == "" || v == "unknown" {
			t.Errorf("%s: version: got %q", id, v)
		}
	}
	for _, want := range groupNames() {
		if !groups[want] {
			t.Errorf("no row of %s", want)
		}
	}
	for _, id := range []string{
		"hit-hot terrace-sieve 1", "hit-hot terrace-sieve-int 1", "hit-hot terrace-lru 1", "hit-hot terrace-lru-int 1",
		"hit-onekey otter-loading 2", "hit-zipf otter-loading 8", "mix otter 2", "set otter 2", "set terrace-sieve-new 2",
		"promote terrace-promote 1", "stampede terrace-lru 10000", "memory terrace-sieve 1",
		"remote-100 terrace-redis 512", "remote-1024 terrace-memcached 64", "remote-100 gomemcache 1", "batch-64 rueidis-domulti 64",
	} {
		if !identities[id] {
			t.Errorf("no row %s", id)
		}
	}
}

func TestTablesAndAFileBesideThem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.json")
	code, stdout, stderr := runPeers(t.Context(), append(quick, "--groups", "hit-hot,memory", "--names", "terrace,map-rwmutex", "--json", file)...)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"hit-hot, 1 goroutine\n", "memory, 1 goroutine\n", "map-rwmutex", "× sieve", "× lru", "this tree", "B/entry"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("stdout has no %q:\n%s", want, stdout)
		}
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	if err := json.Unmarshal(written, &rows); err != nil || len(rows) != 8 {
		t.Errorf("the file has %d rows, want 8 (%v)", len(rows), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("files left behind: %v", left)
	}
}

func TestWrongInputIsOneLineAndExit2(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct{ args, says string }{
		{"stray", `"stray"`},
		{"--nonsense", "--nonsense"},
		{"--rounds 0", "--rounds 0"},
		{"--rounds many", "--rounds"},
		{"--seconds 0", "--seconds 0"},
		{"--seconds NaN", "--seconds NaN"},
		{"--seconds 61", "--seconds 61"},
		{"--keys 1", "--keys 1"},
		{"--entries 1", "--entries 1"},
		{"--groups hit", `"hit"`},
		{"--groups=", "--groups"},
		{"--names otto", `"otto"`},
		{"--groups memory --names groupcache", `"groupcache"`},
		{"--names=", "--names"},
		{"--redis=", "--redis"},
		{"--memcached=", "--memcached"},
		{"--json=", "--json"},
		{"--json " + dir, "--json"},
		{"--json " + dir + "/missing/rows.json", "no such file"},
		{"--groups batch-64 --redis 127.0.0.1:1", "127.0.0.1:1"},
	} {
		code, stdout, stderr := runPeers(t.Context(), strings.Fields(test.args)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%s: exit code %d, stdout %q; want %d and nothing", test.args, code, stdout, exitUsage)
		}
		wantOneLine(t, stderr, test.says)
	}
}

func TestWithoutServersTheRestIsMeasured(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	code, stdout, stderr := runPeers(t.Context(), append(quick, "--groups", "hit-hot,batch-64", "--names", "map-rwmutex,rueidis,gomemcache", "--json", "-")...)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"redis-server", "memcached"} {
		if !strings.Contains(stderr, "! left out what needs "+want+": it is not installed\n") {
			t.Errorf("stderr does not say that %s is missing: %q", want, stderr)
		}
	}
	var rows []row
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil || len(rows) != 1 || rows[0].Name != "map-rwmutex" {
		t.Errorf("got the rows %s, want that of map-rwmutex alone (%v)", stdout, err)
	}

	if code, _, stderr := runPeers(t.Context(), "--groups", "batch-64"); code != exitUsage || !strings.Contains(stderr, "nothing is left") {
		t.Errorf("nothing to measure: exit code %d, %q", code, stderr)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr := runPeers(ctx, "--groups", "hit-hot", "--names", "map-rwmutex", "--json", "-")
	if code != exitInterrupted || stdout != "[]\n" || !strings.Contains(stderr, "interrupted") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}
