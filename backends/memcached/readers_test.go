package memcached

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier/storetest/servers"
)

// Reads, writes and the line have connections apart, which are not more than
// Options.MaxConnections in all, and none is closed for another.
func TestConnectionsOfAllKindsAreBounded(t *testing.T) {
	const most = enoughToShare
	var dials atomic.Int64
	s, err := Open(Options{
		Servers: []string{servers.Memcached(t).Addr()}, MaxConnections: most, Gather: 2, Timeout: 10 * time.Second,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	many := func(what string, do func(key string) error) {
		var callers sync.WaitGroup
		for i := range 64 {
			callers.Go(func() {
				key := fmt.Sprint("k", i)
				for range 20 {
					if err := do(key); err != nil {
						t.Errorf("%s %s: %v", what, key, err)
					}
				}
			})
		}
		callers.Wait()
	}
	set := func(key string) error { return s.Set(t.Context(), key, []byte(key), time.Minute) }
	get := func(key string) error { _, err := s.Get(t.Context(), key); return err }
	for range 3 {
		many("set", set)
		many("get", get)
		many("get many", func(key string) error { _, err := s.GetMany(t.Context(), []string{key, "x"}); return err })
		for range 10 { // alone
			if err := get("k1"); err != nil {
				t.Error(err)
			}
		}
		many("all", func(key string) error {
			if err := set(key); err != nil {
				return err
			}
			return get(key)
		})
	}
	if n := dials.Load(); n != most {
		t.Errorf("%d connections were made, want %d, all of which are allowed", n, most)
	}
}

// What is told of another key than was asked for is no answer, whoever reads it.
func TestAnswersOfOtherKeysAreErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer l.Close()
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					_, _ = io.WriteString(c, "VALUE other 0 5 1\r\nwrong\r\nEND\r\n")
				}
			})
		}
	})
	for most := 1; most <= enoughToShare; most += enoughToShare - 1 {
		s, err := Open(Options{Servers: []string{l.Addr().String()}, MaxConnections: most})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), "mine"); got != nil || !errors.Is(err, errNotAsked) {
			t.Errorf("Get with %d connections: %q, %v", most, got, err)
		}
		if got, err := s.GetMany(t.Context(), []string{"mine", "yours"}); got[0] != nil || got[1] != nil || !errors.Is(err, errNotAsked) {
			t.Errorf("GetMany with %d connections: %q, %v", most, got, err)
		}
		if done, err := s.SetIf(t.Context(), "mine", []byte("x"), time.Minute, []byte("wrong")); done || !errors.Is(err, errNotAsked) {
			t.Errorf("SetIf with %d connections: %v, %v", most, done, err)
		}
		_ = s.Close()
	}
}

// A connection whose answers are one behind is given up, by gomemcache too.
func TestAConnectionThatIsOutOfStepIsGivenUp(t *testing.T) {
	for most := 1; most <= enoughToShare; most += enoughToShare - 1 {
		var first atomic.Bool
		first.Store(true)
		s, err := Open(Options{
			Servers: []string{"a:1"}, MaxConnections: most,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				before := ""
				if first.Swap(false) {
					before = "before"
				}
				go func() {
					defer far.Close()
					for lines := bufio.NewScanner(far); lines.Scan(); {
						key := strings.Fields(lines.Text())[1]
						answer := key
						if before != "" {
							answer, before = before, key
						}
						_, _ = fmt.Fprintf(far, "VALUE %s 0 %d 1\r\n%s\r\nEND\r\n", answer, len(answer), answer)
					}
				}()
				return near, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), "k"); got != nil || !errors.Is(err, errNotAsked) {
			t.Errorf("with %d connections: %q, %v", most, got, err)
		}
		for _, key := range []string{"l", "m"} {
			if got, err := s.Get(t.Context(), key); string(got) != key || err != nil {
				t.Errorf("with %d connections: %q, %v, want %q", most, got, err, key)
			}
		}
		_ = s.Close()
	}
}

// A server that cannot be asked any more has no connection kept.
func TestNoConnectionIsKeptBehindAnError(t *testing.T) {
	server := servers.Memcached(t)
	proxy := servers.Proxy(t, server.Addr())
	s, err := Open(Options{Servers: []string{proxy.Addr()}, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 3 {
		if _, err := s.GetMany(t.Context(), []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		proxy.BlackHole()
		if _, err := s.GetMany(t.Context(), []string{"a", "b"}); err == nil {
			t.Error("no error out of a black hole")
		}
		conns := s.servers[0].conns
		conns.mu.Lock()
		if n := len(conns.live); n > 0 {
			t.Errorf("%d connections are kept", n)
		}
		conns.mu.Unlock()
		proxy.Restore()
	}
}
