package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

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

// benchOnTerminal is bench with a terminal as stderr, of which it returns what is left there
// when the line that shows how far it is has been wiped.
func benchOnTerminal(ctx context.Context, stderr *terminal, args ...string) (code int, stdout, left string) {
	var out bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &out, stderr)
	left = stderr.shown.String()
	if i := strings.LastIndex(left, clearLine); i >= 0 {
		left = left[i+len(clearLine):]
	}
	return code, out.String(), left
}

// terminal calls do a while after it was first told of a step.
type terminal struct {
	shown bytes.Buffer
	step  string
	after time.Duration
	do    func()
}

// onStep returns a terminal that does something in the middle of the step that is shown by
// words that begin so: "[2/3]".
func onStep(step string, after time.Duration, do func()) *terminal {
	return &terminal{step: step, after: after, do: do}
}

func (t *terminal) IsTerminal() bool { return true }

func (t *terminal) Write(b []byte) (int, error) {
	if t.do != nil && bytes.HasPrefix(bytes.TrimPrefix(b, []byte(clearLine)), []byte(t.step)) {
		time.AfterFunc(t.after, t.do)
		t.do = nil
	}
	return t.shown.Write(b)
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
