package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"time"
)

// fleetServer is what the processes of a fleet share.
type fleetServer struct {
	*remote
	redis     string   // URL
	memcached []string // HOST:PORT
}

// fleetServerOf returns the server that the settings name, or starts one. It answers.
func fleetServerOf(ctx context.Context, s *fleetSettings) (*fleetServer, error) {
	f := &fleetServer{redis: s.Redis, memcached: s.Memcached}
	stop := func() {}
	own := s.Redis == "" && len(s.Memcached) == 0
	if own {
		address, stopIt, err := startServer(ctx, s.Backend)
		if err != nil {
			return nil, err
		}
		stop = stopIt
		if s.Backend == "redis" {
			f.redis = "redis://" + address
		} else {
			f.memcached = []string{address}
		}
	}
	var err error
	if s.Backend == "redis" {
		f.remote, err = redisRemote(f.redis)
	} else {
		f.remote, err = memcachedRemote(f.memcached)
	}
	if err == nil {
		f.stop = stop
		if own {
			f.label += ", started for this run"
		}
		err = f.answers(ctx)
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("--%s: %w", s.Backend, err)
	}
	return f, nil
}

// order is what the processes are told of the server.
func (f *fleetServer) order() cacheOrder { return cacheOrder{Redis: f.redis, Memcached: f.memcached} }

// addresses returns what a forwarder has to stand in front of, or an error where it
// cannot.
func (f *fleetServer) addresses() ([]string, error) {
	if f.redis == "" {
		return f.memcached, nil
	}
	u, err := url.Parse(f.redis)
	if err != nil || u.Scheme != "redis" {
		return nil, errors.New("only connections to a single Redis without TLS can be cut: want a redis:// URL, or another --scenario")
	}
	return []string{redisAddress(u)}, nil
}

const (
	// startWithin bounds the wait for a server that was started.
	startWithin = 10 * time.Second
	// startTries is how many ports are tried: another process can take a free one first.
	startTries = 5
)

// startServer starts a server of the kind as a child, on a free port of the loopback
// interface.
func startServer(ctx context.Context, kind string) (address string, stop func(), err error) {
	binary := map[string]string{"redis": "redis-server", "memcached": "memcached"}[kind]
	path, err := exec.LookPath(binary)
	if err != nil {
		return "", nil, fmt.Errorf("fleet: %s is not installed: install it, or name a server by --%s", binary, kind)
	}
	for range startTries {
		if address, stop, err = tryServer(ctx, kind, path); err == nil {
			return address, stop, nil
		}
		if ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
	}
	return "", nil, failure{fmt.Errorf("fleet: start %s: %w", binary, err)}
}

func tryServer(ctx context.Context, kind, path string) (address string, stop func(), err error) {
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	var words lastWords
	cmd := exec.Command(path, serverArgs(kind, port)...)
	cmd.Dir = os.TempDir() // where it writes nothing
	cmd.Stdout, cmd.Stderr = &words, &words
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	stop = func() {
		_ = cmd.Process.Kill() // there is nothing to keep
		<-ended
	}
	for deadline := time.Now().Add(startWithin); ; time.Sleep(5 * time.Millisecond) {
		if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			conn.Close()
			select {
			case <-ended: // it is another's server that answers, who took the port first
			case <-time.After(50 * time.Millisecond):
				return address, stop, nil
			}
		}
		select {
		case <-ended:
			stop()
			return "", nil, fmt.Errorf("it ended at once: %s", words.String())
		default:
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			stop()
			return "", nil, errors.Join(ctx.Err(), errors.New("it does not answer: "+words.String()))
		}
	}
}

func serverArgs(kind string, port int) []string {
	if kind == "redis" {
		return []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no"}
	}
	args := []string{"-l", "127.0.0.1", "-p", strconv.Itoa(port), "-U", "0", "-c", "4096"}
	if os.Geteuid() == 0 { // it refuses to run as root unless told to
		if u, err := user.Current(); err == nil {
			args = append(args, "-u", u.Username)
		}
	}
	return args
}

// freePort returns a port that nobody listens on, from below the range that systems draw
// the clients' ports from, and none that a server has by default.
func freePort() (int, error) {
	const low, high = 20_000, 32_000
	var last error
	for range 100 {
		port := low + rand.IntN(high-low)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("no free port from %d to %d: %w", low, high, last)
}

// keyNames are the names of the fleet's keys.
func keyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fleetKey(i)
	}
	return names
}
