package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"time"
)

// serverKind is a kind of server that contestants ask.
type serverKind int

const (
	noServer serverKind = iota
	redisServer
	memcachedServer
)

// program tells how a kind of server is run and asked whether it is there.
type program struct {
	name   string
	args   func(port string) []string
	ask    string // a command
	expect string // how a server answers it
}

var programs = map[serverKind]program{
	redisServer: {
		name: "redis-server",
		args: func(port string) []string {
			return []string{"--bind", loopback, "--port", port, "--save", "", "--appendonly", "no"}
		},
		ask:    "PING\r\n",
		expect: "+PONG",
	},
	memcachedServer: {
		name: "memcached",
		args: func(port string) []string {
			args := []string{"-l", loopback, "-p", port, "-U", "0", "-t", "2", "-c", "4096"}
			if u, err := user.Current(); err == nil && os.Geteuid() == 0 {
				args = append(args, "-u", u.Username) // it refuses to run as root unless told to
			}
			return args
		},
		ask:    "version\r\n",
		expect: "VERSION",
	},
}

const loopback = "127.0.0.1"

const (
	readyWithin = 10 * time.Second // for a server that was started
	answerSoon  = time.Second      // for one that runs
	portTries   = 10
)

// server is one that runs: another's, or a child of this process.
type server struct {
	address string
	child   *exec.Cmd // nil: another's
	exited  chan struct{}
}

// errNotInstalled tells that there is no such program.
var errNotInstalled = errors.New("is not installed")

// useServer returns the server at the address, or starts one where that is empty.
func useServer(ctx context.Context, kind serverKind, address string) (*server, error) {
	p := programs[kind]
	if address != "" {
		if err := p.answers(address); err != nil {
			return nil, fmt.Errorf("%s does not answer as %s: %w", address, p.name, err)
		}
		return &server{address: address}, nil
	}
	path, err := exec.LookPath(p.name)
	if err != nil {
		return nil, fmt.Errorf("%s %w", p.name, errNotInstalled)
	}
	for range portTries {
		var s *server
		if s, err = p.start(ctx, path); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("start %s: %w", p.name, err)
}

// start runs the program on a port that is free now, and may be taken when it wants
// it.
func (p program) start(ctx context.Context, path string) (*server, error) {
	// From below the range that systems draw clients' ports from.
	port := strconv.Itoa(20_000 + rand.IntN(12_000))
	s := &server{
		address: net.JoinHostPort(loopback, port),
		child:   exec.Command(path, p.args(port)...),
		exited:  make(chan struct{}),
	}
	if p.answers(s.address) == nil {
		return nil, errors.New("the port is taken")
	}
	dieWithParent(s.child)
	started := make(chan error)
	go func() {
		// In a goroutine of its own, as the parent whose death ends the child is its
		// thread.
		err := s.child.Start()
		started <- err
		if err == nil {
			_ = s.child.Wait()
		}
		close(s.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(readyWithin); ; {
		err := p.answers(s.address)
		if err == nil {
			return s, nil
		}
		select {
		case <-s.exited:
			return nil, errors.New("it ended at once")
		case <-ctx.Done():
			s.stop()
			return nil, context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.stop()
			return nil, err
		}
	}
}

// answers returns nil if a server of this kind is there.
func (p program) answers(address string) error {
	conn, err := net.DialTimeout("tcp", address, answerSoon)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(answerSoon)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(p.ask)); err != nil {
		return err
	}
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(answer[:n], []byte(p.expect)) {
		return fmt.Errorf("it answers %q", bytes.TrimSpace(answer[:n]))
	}
	return nil
}

// stop ends a child.
func (s *server) stop() {
	if s == nil || s.child == nil {
		return
	}
	_ = s.child.Process.Kill() // it has nothing to keep
	<-s.exited
}
