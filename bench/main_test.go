package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == processName || os.Args[1] == "fleet") {
		main() // the tests' program is the bench, too, as a fleet starts itself
	}
	// Under the race detector each process of a fleet would take a second to end.
	os.Setenv("GORACE", strings.TrimSpace("atexit_sleep_ms=0 "+os.Getenv("GORACE")))
	// go-redis notices only within a second that its client has been closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// quick are flags that make a row take little time.
var quick = []string{"--rate", "2000", "--seconds", "0.1", "--warmup-seconds", "0.05", "--closed-seconds", "0.02", "--origin-latency", "2ms"}

// bench runs the command and returns what it did.
func bench(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return benchOf(ctx, strings.NewReader(""), args...)
}

// benchOf is bench with something on stdin.
func benchOf(ctx context.Context, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(ctx, args, stdin, &out, &err)
	return code, out.String(), err.String()
}

// wantOneLine checks that stderr is one line that holds all of the parts.
func wantOneLine(t *testing.T, stderr string, parts ...string) {
	t.Helper()
	if strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
		t.Errorf("stderr is not one line: %q", stderr)
	}
	for _, part := range parts {
		if !strings.Contains(stderr, part) {
			t.Errorf("stderr: got %q, want %q in it", stderr, part)
		}
	}
}
