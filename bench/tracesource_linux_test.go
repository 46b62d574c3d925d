package main

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C ends a command whose named pipe nobody opens for writing.
func TestPipeWithoutWriter(t *testing.T) {
	for name, args := range map[string][]string{
		"trace": {"trace"},
		"bench": {"--combinations", "l1", "--policies", "fixed", "--trace"},
	} {
		pipe := filepath.Join(t.TempDir(), name)
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		var stdout, stderr strings.Builder
		go func() { ended <- run(ctx, append(args, pipe), strings.NewReader(""), &stdout, &stderr) }()
		cancel()
		select {
		case code := <-ended:
			if code != exitInterrupted {
				t.Errorf("%v: exit code %d, stderr %q, want %d", args, code, &stderr, exitInterrupted)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%v: it goes on waiting", args)
		}
		letGo(t, pipe)
	}
}

// letGo ends the goroutine that may still wait for a writer of the pipe, or be about to. What
// is opened here stays so, as nobody tells when that has read.
func letGo(t *testing.T, pipe string) {
	t.Helper()
	fd, err := syscall.Open(pipe, syscall.O_RDWR, 0)
	if err == nil {
		_, err = syscall.Write(fd, []byte("\n"))
	}
	if err != nil {
		t.Error(err)
	}
}

// What is written into a named pipe is a trace.
func TestNamedPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writing := make(chan error, 1)
	go func() {
		fd, err := syscall.Open(pipe, syscall.O_WRONLY, 0)
		if err == nil {
			_, err = syscall.Write(fd, []byte(zipped(t, "a\nb\na\n")))
			syscall.Close(fd)
		}
		writing <- err
	}()
	code, stdout, stderr := bench(t.Context(), "trace", "--json", "-", "--sizes", "9", "--policies", "opt", pipe)
	if err := <-writing; err != nil {
		t.Fatal(err)
	}
	if code != exitOK {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	if got := rowsText(parseTrace(t, stdout).Rows); got != "opt@9:1/3" {
		t.Errorf("got %s", got)
	}
}
