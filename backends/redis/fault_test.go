package redis_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// budget is a caller's patience, and slack what a busy machine may add to it.
const (
	budget = 25 * time.Millisecond
	slack  = 500 * time.Millisecond
)

// onTime runs each method with a context of its own and wants the deadline's error
// not long after.
func onTime(t *testing.T, s *redis.Store) {
	t.Helper()
	for name, call := range map[string]func(context.Context) error{
		"Get":    func(ctx context.Context) error { _, err := s.Get(ctx, "key"); return err },
		"Set":    func(ctx context.Context) error { return s.Set(ctx, "key", []byte("late"), time.Minute) },
		"Delete": func(ctx context.Context) error { return s.Delete(ctx, "key") },
		"SetIf": func(ctx context.Context) error {
			_, err := s.SetIf(ctx, "key", []byte("late"), time.Minute, nil)
			return err
		},
		"GetMany": func(ctx context.Context) error {
			_, err := s.GetMany(ctx, []string{"key", "other"})
			return err
		},
		"Clear": s.Clear,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), budget)
		start := time.Now()
		err := call(ctx)
		took := time.Since(start)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got error %v, want the context's", name, err)
		}
		if took > budget+slack {
			t.Errorf("%s: took %v with %v to go", name, took, budget)
		}
	}
	// A context that is cancelled has no deadline that a socket could be given.
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(budget, cancel)
	defer timer.Stop()
	start := time.Now()
	if _, err := s.Get(ctx, "key"); !errors.Is(err, context.Canceled) {
		t.Errorf("Get, cancelled: got error %v, want the context's", err)
	}
	if took := time.Since(start); took > budget+slack {
		t.Errorf("Get, cancelled: took %v", took)
	}
}

func TestC46AContextBoundsEachCall(t *testing.T) {
	r := servers.Redis(t)
	for _, heeded := range []bool{false, true} {
		for name, fault := range map[string]func(*servers.FaultProxy){
			"slow":       func(p *servers.FaultProxy) { p.Delay(2 * time.Second) },
			"very slow":  func(p *servers.FaultProxy) { p.Delay(time.Minute) },
			"black hole": func(p *servers.FaultProxy) { p.BlackHole() },
		} {
			t.Run(fmt.Sprintf("%s, ContextTimeoutEnabled %v", name, heeded), func(t *testing.T) {
				p := servers.Proxy(t, r.Addr())
				c := client(t, &goredis.Options{Addr: p.Addr(), ContextTimeoutEnabled: heeded, ReadTimeout: 3 * time.Second})
				s := redis.NewWith(c, redis.Options{Prefix: prefix()})
				if err := s.Set(t.Context(), "key", []byte("value"), time.Minute); err != nil {
					t.Fatal(err)
				}
				fault(p)
				onTime(t, s)
				p.Restore()
				p.Reset() // what waits in the network never comes
				if _, err := s.Get(t.Context(), "key"); err != nil {
					t.Errorf("after the fault: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Before its first command a Cluster's client asks for the topology, whatever the context
// says.
func TestC46AContextBoundsTheTopology(t *testing.T) {
	p := servers.Proxy(t, servers.Redis(t).Addr())
	p.BlackHole()
	for _, heeded := range []bool{false, true} {
		t.Run(fmt.Sprint("ContextTimeoutEnabled ", heeded), func(t *testing.T) {
			c := goredis.NewClusterClient(&goredis.ClusterOptions{
				Addrs: []string{p.Addr()}, ContextTimeoutEnabled: heeded, ReadTimeout: 3 * time.Second, MaxRedirects: -1,
			})
			t.Cleanup(func() { _ = c.Close() })
			for name, o := range map[string]redis.Options{"alone": {Prefix: "p:", Gather: 1}, "gathered": {Prefix: "p:"}} {
				t.Run(name, func(t *testing.T) { onTime(t, redis.NewWith(c, o)) })
			}
		})
	}
}

func TestC46AContextBoundsTheWaitForAConnection(t *testing.T) {
	for _, heeded := range []bool{false, true} {
		p := servers.Proxy(t, servers.Redis(t).Addr())
		c := client(t, &goredis.Options{Addr: p.Addr(), PoolSize: 2, ContextTimeoutEnabled: heeded, ReadTimeout: 2 * time.Second, MaxRetries: -1})
		s := redis.NewWith(c, redis.Options{MaxCalls: 10}) // so that callers wait for slots too
		if err := s.Set(t.Context(), "key", []byte("value"), time.Minute); err != nil {
			t.Fatal(err)
		}
		p.Delay(300 * time.Millisecond)
		start := time.Now()
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), budget)
				defer cancel()
				if _, err := s.Get(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got error %v, want the context's", err)
				}
			})
		}
		callers.Wait()
		if took := time.Since(start); took > budget+slack {
			t.Errorf("50 callers at a pool of 2 took %v", took)
		}
		p.Restore()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if got, err := s.Get(ctx, "key"); string(got) != "value" || err != nil {
			t.Errorf("after the fault: got %q, %v", got, err)
		}
		cancel()
		s.Close()
	}
}

func TestC46CallsThatWereLeftAreBounded(t *testing.T) {
	const most = 10
	p := servers.Proxy(t, servers.Redis(t).Addr())
	c := client(t, &goredis.Options{Addr: p.Addr(), PoolSize: 100, ReadTimeout: time.Minute, DialTimeout: time.Minute})
	s := redis.NewWith(c, redis.Options{MaxCalls: most})
	mustSet(t, s, "key", "value")
	p.BlackHole()
	before := runtime.NumGoroutine()
	for range 20 * most {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := s.Get(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want the context's", err)
		}
		cancel()
	}
	// Each has one goroutine here, one where the client dials, and the proxy's.
	if grown := runtime.NumGoroutine() - before; grown > 10*most {
		t.Errorf("%d goroutines more, of %d calls at most", grown, most)
	}
	c.Close()
	p.Cut()
	s.Close()
}

func TestC59AnIdleConnectionThatTheServerClosedIsNotNoticed(t *testing.T) {
	r := servers.Redis(t)
	p := servers.Proxy(t, r.Addr())
	for _, retries := range []int{-1, 0} { // none by the client, and its own number
		c := client(t, &goredis.Options{Addr: p.Addr(), MaxRetries: retries})
		s := redis.NewWith(c, redis.Options{Prefix: prefix()})
		for round := range 20 {
			value := fmt.Append(nil, round)
			if err := s.Set(t.Context(), "key", value, time.Minute); err != nil {
				t.Fatalf("round %d: Set: %v", round, err)
			}
			p.Reset()
			if got, err := s.Get(t.Context(), "key"); string(got) != string(value) || err != nil {
				t.Fatalf("round %d: got %q, %v", round, got, err)
			}
			p.Cut()
			p.Restore()
			stored, err := s.SetIf(t.Context(), "key", []byte("swapped"), time.Minute, value)
			if !stored || err != nil {
				t.Fatalf("round %d: SetIf = %v, %v", round, stored, err)
			}
			p.Reset()
			if got, err := s.GetMany(t.Context(), []string{"key"}); string(got[0]) != "swapped" || err != nil {
				t.Fatalf("round %d: GetMany gives %q, %v", round, got, err)
			}
		}
	}

	// The server itself closes what is idle for a second.
	admin := client(t, &goredis.Options{Addr: r.Addr()})
	if err := admin.ConfigSet(t.Context(), "timeout", "1").Err(); err != nil {
		t.Fatal(err)
	}
	s := open(t, "redis://"+r.Addr(), redis.Options{})
	if err := s.Set(t.Context(), "idle", []byte("value"), time.Minute); err != nil {
		t.Fatal(err)
	}
	probe := goredis.NewClient(&goredis.Options{Addr: r.Addr(), Protocol: 2})
	defer probe.Close()
	deadline := time.Now().Add(10 * time.Second)
	for { // until nobody but the probe, which asks, is connected
		list, err := probe.ClientList(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if n := countLines(list); n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("still connected:\n%s", list)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if got, err := s.Get(t.Context(), "idle"); string(got) != "value" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func countLines(text string) (n int) {
	for _, r := range text {
		if r == '\n' {
			n++
		}
	}
	return n
}

func TestAServerThatRestartsIsFoundAgain(t *testing.T) {
	r := servers.Redis(t)
	s := open(t, "redis://"+r.Addr(), redis.Options{Prefix: "p:"})
	for range 3 {
		if err := s.Set(t.Context(), "key", []byte("value"), time.Minute); err != nil {
			t.Fatal(err)
		}
		r.Kill()
		if _, err := s.Get(t.Context(), "key"); err == nil || errors.Is(err, tier.ErrClosed) {
			t.Errorf("while it is down: got error %v", err)
		}
		r.Start()
		if got, err := s.Get(t.Context(), "key"); got != nil || err != nil {
			t.Errorf("after a restart: got %q, %v", got, err)
		}
		// The script went with the server.
		if stored, err := s.SetIf(t.Context(), "key", []byte("value"), time.Minute, nil); !stored || err != nil {
			t.Errorf("after a restart: SetIf = %v, %v", stored, err)
		}
	}
}

func TestCloseDuringAFaultReturnsAndLetsNobodyWait(t *testing.T) {
	p := servers.Proxy(t, servers.Redis(t).Addr())
	s := open(t, "redis://"+p.Addr()+"?read_timeout=1m&dial_timeout=1m", redis.Options{MaxCalls: 4})
	if err := s.Set(t.Context(), "key", []byte("value"), time.Minute); err != nil {
		t.Fatal(err)
	}
	p.BlackHole()
	var callers sync.WaitGroup
	var begun atomic.Int32
	for range 20 {
		callers.Go(func() {
			begun.Add(1)
			if _, err := s.Get(context.Background(), "key"); !errors.Is(err, tier.ErrClosed) {
				t.Errorf("got error %v, want tier.ErrClosed", err)
			}
		})
	}
	for begun.Load() < 20 {
		time.Sleep(time.Millisecond)
	}
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	callers.Wait()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Close and the callers took %v", took)
	}
}
