package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestInterruptible(t *testing.T) {
	text := strings.Repeat("0123456789", 50_000)
	got, err := io.ReadAll(newInterruptible(t.Context(), strings.NewReader(text)))
	if err != nil || string(got) != text {
		t.Errorf("read %d bytes and %v, want the %d that were written", len(got), err, len(text))
	}
	broken := errors.New("broken")
	got, err = io.ReadAll(newInterruptible(t.Context(), io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken))))
	if string(got) != "abc" || !errors.Is(err, broken) {
		t.Errorf("read %q and %v, want abc and the error", got, err)
	}
}

// Ctrl-C ends a command that waits for somebody to write.
func TestTraceOfAnIdlePipeIsInterrupted(t *testing.T) {
	from, to := io.Pipe()
	defer to.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var stdout, stderr strings.Builder
	go func() { ended <- run(ctx, []string{"trace", "--json", "-", "-"}, from, &stdout, &stderr) }()
	if _, err := io.WriteString(to, strings.Repeat("key\n", 100)); err != nil { // returns when it was read
		t.Fatal(err)
	}
	cancel()
	select {
	case code := <-ended:
		if r := parseTrace(t, stdout.String()); code != exitInterrupted || r.Environment.Complete || len(r.Rows) > 0 {
			t.Errorf("exit code %d, report %+v, want %d, and that nothing was done", code, r, exitInterrupted)
		}
		wantOneLine(t, stderr.String(), "interrupted")
	case <-time.After(time.Minute):
		t.Fatal("it goes on waiting")
	}
}
