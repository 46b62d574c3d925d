package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A fleet that is interrupted, or killed, leaves no process behind.
func TestNoProcessOutlivesItsFleet(t *testing.T) {
	for _, test := range []struct {
		signal syscall.Signal
		code   int // -1: ended by the signal
	}{{syscall.SIGINT, exitInterrupted}, {syscall.SIGTERM, exitInterrupted}, {syscall.SIGKILL, -1}} {
		for _, backend := range backendNames {
			t.Run(test.signal.String()+" "+backend, func(t *testing.T) {
				var stdout, stderr bytes.Buffer
				cmd := exec.Command(os.Args[0], slices.Concat([]string{"fleet"}, few,
					[]string{"--backend", backend, "--scenario", "kill", "--lease-life", "20s"})...)
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				dieWithParent(cmd)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				children := waitingOf(t, cmd.Process.Pid)
				began := time.Now()
				_ = cmd.Process.Signal(test.signal)
				_ = cmd.Wait()
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("it took %v to end", took)
				}
				if got := cmd.ProcessState.ExitCode(); got != test.code {
					t.Errorf("got exit code %d, want %d", got, test.code)
				}
				if test.code == exitInterrupted {
					wantOneLine(t, stderr.String(), "interrupted", "kill, lease on")
					if !strings.Contains(stdout.String(), "\nkill        off") {
						t.Errorf("the row that was done is not printed:\n%s", stdout.String())
					}
				}
				for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
					left := slices.DeleteFunc(slices.Clone(children), func(pid int) bool { return !lives(pid) })
					if len(left) == 0 {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("processes are left: %v", left)
					}
				}
			})
		}
	}
}

// waitingOf returns the processes of a fleet that waits for a dead holder's lease: the
// server, and the processes that live on.
func waitingOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	since := time.Now()
	for deadline := since.Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		now := childrenOf(t, pid)
		if !slices.Equal(now, children) {
			children, since = now, time.Now()
		}
		if len(children) == 1+fewProcesses-1 && time.Since(since) > 1500*time.Millisecond {
			return children
		}
		if time.Now().After(deadline) {
			t.Fatalf("got children %v, want the server and the %d processes that live on", children, fewProcesses-1)
		}
	}
}

// childrenOf returns the processes that the process has started.
func childrenOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, _ := os.ReadFile(dir + "/" + task.Name() + "/children")
		for _, field := range strings.Fields(string(text)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
	}
	return children
}

// lives reports whether there is such a process, and it is not only waited for.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}
