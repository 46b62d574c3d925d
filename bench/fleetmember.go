package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// member is a process of a fleet, seen from where the fleet is run.
type member struct {
	*peer
	number int
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr lastWords
	ended  chan struct{} // closed when it is gone, and all it said is read
}

// endWithin is what a process gets to end by itself.
const endWithin = 2 * time.Second

// startMember starts this program as a process of a fleet.
func startMember(number int, handlers map[string]handler) (*member, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &member{number: number, cmd: exec.Command(self, processName), ended: make(chan struct{})}
	m.cmd.Stderr = &m.stderr
	stdin, err := m.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	dieWithParent(m.cmd)
	m.stdin, m.peer = stdin, newPeer(stdin, handlers)
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(m.ended)
		_ = m.serve(stdout)
		_ = m.cmd.Wait() // how it ended is for its stderr to tell
	}()
	return m, nil
}

// ask calls the process. That it is gone is an error with its last words.
func (m *member) ask(ctx context.Context, name string, body, answer any) error {
	err := m.call(ctx, name, body, answer)
	if errors.Is(err, errGone) {
		<-m.ended
		err = fmt.Errorf("%w: %s", err, m.stderr.String())
	}
	if err != nil {
		return fmt.Errorf("process %d: %s: %w", m.number+1, name, err)
	}
	return nil
}

// kill ends the process as kill -9 does, and returns when all that it said is read.
func (m *member) kill() {
	m.killSoon()
	<-m.ended
}

func (m *member) killSoon() { _ = m.cmd.Process.Kill() } // it fails if there is none any more

// end tells the process to end, and sees to it that it does.
func (m *member) end() {
	m.stdin.Close()
	select {
	case <-m.ended:
	case <-time.After(endWithin):
		m.kill()
	}
}

// lastWords keeps the end of what is written to it.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

func (l *lastWords) Write(b []byte) (int, error) {
	const most = 2048
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	l.text = bytes.Clone(l.text[max(0, len(l.text)-most):])
	return len(b), nil
}

// String returns it as one line.
func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return oneLine(strings.TrimSpace(string(l.text)))
}
