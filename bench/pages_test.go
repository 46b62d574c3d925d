package main

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terracecache/terrace/bench/internal/page/pagetest"
	"github.com/terracecache/terrace/coordinator/config"
)

// hostileName is a file's name that would run in a page that is not written with care.
// Slashes cannot be in one.
const hostileName = `<script>window.foreign=1<script>&"'.trace`

func TestHTMLBesideTableAndJSON(t *testing.T) {
	trace := filepath.Join(t.TempDir(), hostileName)
	if err := os.WriteFile(trace, []byte("a\nb\na\nc\na\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args  []string
		table string   // in it
		page  []string // in it
	}{
		{append([]string{"--combinations", "l1,l1+l3", "--goroutines", "1,2", "--writes", "0.4", "--ttl", "10ms", "--stale", "1s", "--skew", "3"}, quick...), "heap/entry",
			[]string{"Hit ratio by tier", "Latency, some percentiles", "Latency distribution: l1+l3", "Latency of writes", "Latency distribution of writes: l1", "Stale answers", "how long past fresh", "Origin calls over time: l1+l3", "Staleness", "Throughput by goroutines", "l1+l3, xfetch", "policy: xfetch, beta: 1"}},
		{append([]string{"compare", "--config", file(t, "good.yaml", goodDocument)}, quick...), "tiers",
			[]string{"Latency distribution", "Hit ratio by tier", "good.yaml", "products: l1 memory"}},
		{[]string{"jitter", "--keys", "50", "--seeds", "1"}, "busiest", []string{"The busiest second", "jitter: 10%"}},
		{[]string{"xfetch", "--draws", "100"}, "formula", []string{"Chance of a refresh", "policy: xfetch"}},
		{[]string{"stampede", "--rate", "50", "--seconds", "0.3", "--ttl", "100ms", "--latency", "10ms"}, "origin calls",
			[]string{"Origin calls over time", "Latency distribution", "Staleness", "here and as published", "single-flight", "lease: 1s"}},
		{[]string{"fleet", "--scenario", "cold", "--processes", "2", "--callers", "2", "--keys", "2", "--origin-latency", "5ms"}, "longest wait",
			[]string{"Origin calls", "Longest wait", "lease on, bus on", "bus: pubsub"}},
		{[]string{"trace", "--sizes", "1,2", "--tiers", "l1:1,l2:1", trace}, "hit %",
			[]string{"Miss ratio by size", "Hit ratio by tier", "opt", "eviction: tinylfu, capacity: 1}"}},
		{[]string{"advise", "--memory", "4KiB", trace}, "alternative",
			[]string{"Advised", "What is expected", "Because no other", "refresh: {policy: xfetch}", "Miss ratio by size", "opt", "Hit ratio by tier", "(advised)", "Origin load", "All that was compared"}},
	} {
		dir := t.TempDir()
		page, document := filepath.Join(dir, "report.html"), filepath.Join(dir, "report.json")
		code, stdout, stderr := bench(t.Context(), append(test.args, "--html", page, "--json", document)...)
		if code != exitOK || stderr != "" || !strings.Contains(stdout, test.table) {
			t.Errorf("%v: got exit code %d, stdout %q, stderr %q", test.args, code, stdout, stderr)
			continue
		}
		text := readFile(t, page)
		if !strings.HasPrefix(text, "<!DOCTYPE html>") || !strings.HasSuffix(text, "</html>\n") {
			t.Errorf("%v: not a whole page", test.args)
		}
		for _, want := range append(test.page, "go run ./bench "+test.args[0], "--html "+page) {
			if !strings.Contains(html.UnescapeString(text), want) {
				t.Errorf("%v: %q is not in the page", test.args, want)
			}
		}
		if strings.Contains(text, "<script>window") {
			t.Errorf("%v: the name of a file runs in the page", test.args)
		}
		if !json.Valid([]byte(readFile(t, document))) {
			t.Errorf("%v: the JSON is none", test.args)
		}
		if files, _ := os.ReadDir(dir); len(files) != 2 {
			t.Errorf("%v: files are left: %v", test.args, files)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHTMLThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "report.html")
	trace := file(t, "keys.plain", "a\nb\na\n")
	for _, test := range []struct{ flags, want string }{
		{"--html=", "--html is empty"},
		{"--html -", "want the name of a file"},
		{"--html " + dir, "--html: cannot write"},
		{"--html " + filepath.Join(dir, "none", "x.html"), "--html: cannot write"},
		{"--html " + page + " --json " + filepath.Join(dir, ".", "report.html"), "the same file"},
	} {
		for _, command := range []string{"--combinations l1", "compare", "stampede", "jitter", "xfetch", "fleet", "trace " + trace, "advise " + trace} {
			code, stdout, stderr := bench(t.Context(), strings.Fields(command+" "+test.flags)...)
			if code != exitUsage || stdout != "" {
				t.Errorf("%s %s: got exit code %d, stdout %q", command, test.flags, code, stdout)
			}
			wantOneLine(t, stderr, test.want)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("files are left: %v", files)
	}
}

// What a run reads is not replaced by what it writes.
func TestOutputsAreNoInputs(t *testing.T) {
	const keys = "a\nb\na\n"
	trace := file(t, "keys.plain", keys)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(trace, link); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"trace --json " + trace, "trace --html " + link, "advise --json " + trace, "advise --html " + trace, "advise --config " + link,
	} {
		code, _, stderr := bench(t.Context(), append(strings.Fields(command), trace)...)
		if code != exitUsage {
			t.Errorf("%s: got exit code %d", command, code)
		}
		wantOneLine(t, stderr, "is what is read here")
	}
	code, _, stderr := bench(t.Context(), "compare", "--combinations", "l1", "--trace", trace, "--html", trace)
	if code != exitUsage {
		t.Errorf("compare: got exit code %d", code)
	}
	wantOneLine(t, stderr, "is what is read here")
	if got, err := os.ReadFile(trace); err != nil || string(got) != keys {
		t.Errorf("the trace is %q now, %v", got, err)
	}
}

func TestCommandLineHasNoSecrets(t *testing.T) {
	args := []string{
		"compare", "--redis", "redis://user:hunter2@host:6379/1?password=hunter2", "--origin=https://u:hunter2@host/items?id={key}&token=hunter2",
		"--set", "users.tiers.l2.encryption.key=" + testKey, "--set=users.tiers.l2.encryption.keys=" + testKey,
		"--set", "users.tiers.l2.url=redis://:hunter2/x@y@host", "--set", "users.lifetime.ttl=5s", "it's",
	}
	got := commandLine(withArguments(t.Context(), args))
	wantNoSecret(t, got)
	want := `go run ./bench compare --redis 'redis://…@host:6379/1?…' '--origin=https://…@host/items?…'` +
		` --set users.tiers.l2.encryption.key=… --set=users.tiers.l2.encryption.keys=…` +
		` --set users.tiers.l2.url=redis://…@host --set users.lifetime.ttl=5s 'it'\''s'`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestConfigsOfPagesAreDocuments(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1")
	t.Setenv("MEMCACHED", "127.0.0.1:1")
	var texts []string
	s := settings{TTL: 1e9, Stale: 5e8, StaleIfError: 2e9, Beta: 1.5, L1Entries: 60, L2Entries: 200}
	for _, combination := range []string{"l1", "l2", "l1+l2+l3", "l1+l3(redis)", "l1+l3(memcached)"} {
		for _, policyName := range policyNames {
			texts = append(texts, s.config(combination, policyName))
		}
	}
	s.Memcached = []string{"127.0.0.1:1"}
	texts = append(texts, s.config("l1+l3", "swr"))
	for _, tiers := range []string{"l1:500,l2:2000:w-tinylfu", "l1:10MB,l2:1GiB", "l1:5:sieve,l2:7:2q,l3:9:arc", "l1:5:lru-sharded"} {
		c, err := parseTraceCombination(tiers)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, c.config())
	}
	fleet := fleetSettings{L1TTL: 1e9, LeaseLife: 1e9}
	for _, row := range []fleetRow{{Keys: 1, Lease: true, Bus: true}, {Keys: 1, Backend: "memcached"}} {
		texts = append(texts, row.config(&fleet))
	}
	for _, text := range texts {
		if _, err := config.Parse("page.yaml", []byte(text), config.Options{}); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestPageOfCompareInABrowser: with writes and stale answers it has all charts that it may
// have of one combination.
func TestPageOfCompareInABrowser(t *testing.T) {
	page := filepath.Join(t.TempDir(), "compare.html")
	args := append([]string{"--combinations", "l1", "--policies", "fixed,swr", "--goroutines", "1,2", "--writes", "0.2", "--deletes", "0.2",
		"--ttl", "10ms", "--stale", "1s", "--skew", "3", "--html", page}, quick...)
	if code, _, stderr := bench(t.Context(), args...); code != exitOK || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	pagetest.Open(t, page, 16)
}

// TestPageOfAdviceInABrowser: with a remote tier and prices it has all charts that it may
// have.
func TestPageOfAdviceInABrowser(t *testing.T) {
	trace, page := filepath.Join(t.TempDir(), hostileName), filepath.Join(t.TempDir(), "advice.html")
	var keys strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&keys, "key-%d\n", i*i%997%(40+i/4))
	}
	if err := os.WriteFile(trace, []byte(keys.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := bench(t.Context(), "advise", "--memory", "128KiB", "--policies", "lru,2q,sieve", "--remote-latency", "1ms", "--goal", "cost", "--origin-price", "5",
		"--remote-price", "0.01", "--verify-curve", "--html", page, trace)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	pagetest.Open(t, page, 6)
}
