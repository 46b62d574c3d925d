package servers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	host = "127.0.0.1"

	// readyWithin bounds the wait for a server that was started. It takes some ten
	// milliseconds; the rest is for a machine that does much else.
	readyWithin = 10 * time.Second

	// stopWithin bounds the wait for a server that was told to stop.
	stopWithin = 5 * time.Second

	// pollEvery is the pause between two looks at a server that is starting.
	pollEvery = 2 * time.Millisecond

	// portTries is how many ports are tried: another process can take a free port
	// before the server does.
	portTries = 10
)

// Server is a server in a process of its own, which ends with the test.
type Server struct {
	t    testing.TB
	spec spec
	dir  string

	mu      sync.Mutex
	port    int
	process *process // nil while stopped
}

// spec tells how one kind of server is run.
type spec struct {
	binary string
	args   func(port int, dir string) []string
	// ready returns nil once the server at addr answers.
	ready func(addr string) error
}

// process is one run of a server.
type process struct {
	cmd    *exec.Cmd
	log    string        // path
	exited chan struct{} // closed when the process has ended and is reaped
}

var errPortTaken = errors.New("the port is taken")

func run(t testing.TB, s spec) *Server {
	t.Helper()
	server := &Server{t: t, spec: s, dir: t.TempDir()}
	t.Cleanup(server.kill)
	for range portTries {
		port, err := freePort()
		if err != nil {
			t.Fatalf("start %s: %v", s.binary, err)
		}
		server.port = port
		err = server.start()
		if err == nil {
			return server
		}
		if !errors.Is(err, errPortTaken) {
			t.Fatal(err)
		}
	}
	t.Fatalf("start %s: no free port in %d tries", s.binary, portTries)
	return nil
}

// Addr returns the server's host:port. It stays the same over restarts.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr()
}

func (s *Server) addr() string { return net.JoinHostPort(host, strconv.Itoa(s.port)) }

// Start starts the server again, empty and on the port that it had, and returns
// when it answers. It does nothing to a server that runs.
func (s *Server) Start() {
	s.t.Helper()
	if err := s.start(); err != nil {
		s.t.Fatal(err)
	}
}

// Stop tells the server to end and returns when it has. It does nothing to a
// server that is stopped.
func (s *Server) Stop() {
	s.t.Helper()
	if !s.end(syscall.SIGTERM) {
		s.kill()
		s.t.Errorf("stop %s: still there after %v, killed", s.spec.binary, stopWithin)
	}
}

// Kill ends the server at once, as a crash does, and returns when it is gone. It
// does nothing to a server that is stopped.
func (s *Server) Kill() {
	s.t.Helper()
	s.kill()
}

func (s *Server) kill() { s.end(syscall.SIGKILL) }

// end reports whether the server is gone.
func (s *Server) end(signal os.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return true
	}
	if err := s.process.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		_ = s.process.cmd.Process.Kill() // a system without that signal
	}
	select {
	case <-s.process.exited:
		s.process = nil
		return true
	case <-time.After(stopWithin):
		return false
	}
}

func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return nil
	}
	path, err := exec.LookPath(s.spec.binary)
	if err != nil {
		return fmt.Errorf("%s is not installed: apt-get install redis-server memcached (%w)", s.spec.binary, err)
	}
	p, err := launch(path, s.spec.args(s.port, s.dir), s.dir)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.spec.binary, err)
	}
	if err := p.awaitReady(s.addr(), s.spec.ready); err != nil {
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("start %s: %w", s.spec.binary, err)
	}
	s.process = p
	return nil
}

func launch(path string, args []string, dir string) (*process, error) {
	log, err := os.CreateTemp(dir, filepath.Base(path)+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(path, args...), log: log.Name(), exited: make(chan struct{})}
	p.cmd.Dir = dir
	// A file and not a buffer: no goroutine copies, none is left.
	p.cmd.Stdout, p.cmd.Stderr = log, log
	dieWithParent(p.cmd)

	started := make(chan error)
	go func() {
		// In a goroutine that is not locked to its thread, as the caller's may be:
		// the parent whose death ends the child is that thread.
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is for the log to tell
		}
		close(p.exited)
	}()
	return p, <-started
}

func (p *process) awaitReady(addr string, ready func(addr string) error) error {
	deadline := time.Now().Add(readyWithin)
	for {
		select {
		case <-p.exited:
			text := p.tail()
			if strings.Contains(text, "in use") {
				return errPortTaken
			}
			return fmt.Errorf("it ended at once; its last words:\n%s", text)
		default:
		}
		err := ready(addr)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready after %v: %w; its last words:\n%s", readyWithin, err, p.tail())
		}
		time.Sleep(pollEvery)
	}
}

func (p *process) tail() string {
	const most = 2048
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// freePort returns a port that nobody listens on. It takes one from below the
// range that systems draw the client's port of a connection from: no connection
// gets it while the server is stopped for a restart, and a client that dials a
// stopped server is not connected to itself.
func freePort() (int, error) {
	const low, high = 20_000, 32_000
	var last error
	for range 100 {
		port := low + rand.IntN(high-low)
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("no free port from %d to %d: %w", low, high, last)
}
