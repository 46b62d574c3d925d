package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// file writes a document and returns its name.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const goodDocument = `caches:
  products:
    tiers:
      - {name: l1, backend: memory, eviction: lru, capacity: 60}
    lifetime: {ttl: 500ms}
    refresh: {policy: fixed}
    limits: {load_timeout: 1s}
`

// faultyDocument has two faults, in lines 4 and 5.
const faultyDocument = `caches:
  users:
    tiers:
      - {name: l1, backend: lru, evictoin: 2q, capacity: 60}
    lifetime: {ttl: 5}
`

// unwiseDocument has one warning, and secrets.
const unwiseDocument = `caches:
  orders:
    tiers:
      - {name: l3, backend: redis, url: "redis://user:hunter2@127.0.0.1:1", encryption: {key: "${BENCH_TEST_KEY}"}}
    lifetime: {ttl: 500ms, jitter: 10%}
    limits: {load_timeout: 1s}
`

const testKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func wantNoSecret(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for _, secret := range []string{"hunter2", testKey} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is told:\n%s", secret, text)
			}
		}
	}
}

func TestValidateTellsWhatWouldRun(t *testing.T) {
	code, stdout, stderr := bench(t.Context(), "validate", file(t, "good.yaml", goodDocument))
	want := "products: l1 memory (lru, 60 entries); ttl 500ms; refresh fixed\n"
	if code != exitOK || stdout != want || stderr != "" {
		t.Errorf("got exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestValidateReadsStdin(t *testing.T) {
	code, stdout, stderr := benchOf(t.Context(), strings.NewReader(goodDocument), "validate", "-",
		"--set", "products.refresh.policy=swr", "--set", "products.lifetime.stale_while_revalidate=500ms")
	if code != exitOK || !strings.HasSuffix(stdout, "refresh swr\n") || stderr != "" {
		t.Errorf("got exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, stdout, stderr = benchOf(t.Context(), strings.NewReader(faultyDocument), "validate", "-")
	if code != exitFailure || stdout != "" || !strings.HasPrefix(stderr, "<stdin>:4:") {
		t.Errorf("got exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestValidateTellsAllFaultsOfAllFiles(t *testing.T) {
	good, bad := file(t, "good.yaml", goodDocument), file(t, "bad.yaml", faultyDocument)
	empty := file(t, "empty.yaml", "")
	code, stdout, stderr := bench(t.Context(), "validate", bad, good, empty)
	if code != exitFailure {
		t.Errorf("got exit code %d", code)
	}
	if !strings.HasPrefix(stdout, good+": products: ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("stdout is not the good file's summary alone: %q", stdout)
	}
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	wants := []string{bad + ":4:34: caches.users.tiers.l1.evictoin: ", bad + ":5:21: caches.users.lifetime.ttl: ", empty + ":1:1: "}
	if len(lines) != len(wants) {
		t.Fatalf("got %d lines, want %d:\n%s", len(lines), len(wants), stderr)
	}
	for i, want := range wants {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d: got %q, want it to begin with %q", i, lines[i], want)
		}
	}
	if !strings.Contains(lines[0], "did you mean eviction?") {
		t.Errorf("what was meant is missing: %q", lines[0])
	}
}

func TestValidateShowsWarningsAndNoSecrets(t *testing.T) {
	t.Setenv("BENCH_TEST_KEY", testKey)
	name := file(t, "unwise.yaml", unwiseDocument)
	code, stdout, stderr := bench(t.Context(), "validate", name)
	if code != exitOK || !strings.HasPrefix(stdout, "orders: l3 redis (encrypted)") {
		t.Errorf("got exit code %d, stdout %q", code, stdout)
	}
	for _, part := range []string{name + ":4:", "warning: caches.orders.tiers.l3.prefix: none"} {
		if !strings.Contains(stderr, part) {
			t.Errorf("stderr: got %q, want %q in it", stderr, part)
		}
	}
	wantNoSecret(t, stdout, stderr)

	t.Setenv("BENCH_TEST_KEY", testKey+"hunter2")
	code, stdout, stderr = bench(t.Context(), "validate", name, "--set", "orders.tiers.l3.url=hunter2")
	if code != exitFailure || strings.Count(stderr, "\n") != 2 {
		t.Errorf("got exit code %d, stderr %q", code, stderr)
	}
	wantNoSecret(t, stdout, stderr)
}

// A --set is about the files that have its cache, and wrong only where none has.
func TestSetFindsItsFile(t *testing.T) {
	t.Setenv("BENCH_TEST_KEY", testKey)
	files := []string{file(t, "good.yaml", goodDocument), file(t, "unwise.yaml", unwiseDocument)}
	with := func(set ...string) (int, string, string) {
		args := append([]string{"validate"}, files...)
		for _, s := range set {
			args = append(args, "--set", s)
		}
		return bench(t.Context(), args...)
	}
	code, stdout, _ := with("orders.lifetime.ttl=7m", "caches.products.tiers.l1.eviction=sieve")
	if code != exitOK || !strings.Contains(stdout, "ttl 7m") || !strings.Contains(stdout, "sieve") {
		t.Errorf("got exit code %d, stdout %q", code, stdout)
	}
	for _, test := range []struct{ set, says string }{
		{"nobody.lifetime.ttl=7m", "there is no cache nobody"},
		{"orders.lifetime.tll=7m", "tll"},
		{"orders.tiers.l9.capacity=7", "no tier l9"},
		{"orders", "PATH=VALUE"},
		{"orders.lifetime.ttl=", "value"},
	} {
		code, _, stderr := with(test.set)
		var faults []string
		for line := range strings.Lines(stderr) {
			if !strings.Contains(line, "warning: ") {
				faults = append(faults, line)
			}
		}
		if code != exitFailure || len(faults) != 1 || !strings.HasPrefix(faults[0], "--set") || !strings.Contains(faults[0], test.says) {
			t.Errorf("--set %s: got exit code %d, %q", test.set, code, faults)
		}
	}

	// The same mistake in two files is one mistake.
	files[1] = file(t, "again.yaml", goodDocument)
	if _, _, stderr := with("products.refresh.policy=sometimes"); strings.Count(stderr, "\n") != 1 {
		t.Errorf("not told once: %q", stderr)
	}
}

// A file that cannot be read may be the one that has the cache.
func TestSetOfAFileThatIsNoYAML(t *testing.T) {
	broken := file(t, "broken.yaml", "caches: [\n")
	code, _, stderr := bench(t.Context(), "validate", file(t, "good.yaml", goodDocument), broken, "--set", "users.lifetime.ttl=7m")
	if code != exitFailure {
		t.Errorf("got exit code %d", code)
	}
	wantOneLine(t, stderr, broken+":")
}

func TestValidateOfAFileWithoutAnEnd(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip(err)
	}
	code, _, stderr := bench(t.Context(), "validate", "/dev/zero")
	if code != exitFailure {
		t.Errorf("got exit code %d", code)
	}
	wantOneLine(t, stderr, "/dev/zero: ", "larger than")
}

func TestValidateCanBeInterruptedWhileItWaitsForStdin(t *testing.T) {
	in, writer := io.Pipe()
	defer writer.Close() // ends who reads
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	code, stdout, stderr := benchOf(ctx, in, "validate", "-")
	if code != exitInterrupted || stdout != "" {
		t.Errorf("got exit code %d, stdout %q", code, stdout)
	}
	wantOneLine(t, stderr, "interrupted")
}
