package memcached

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier/storetest/servers"
)

// Reads, writes and the line have connections apart, which are not more than
// Options.MaxConnections in all: who needs one more has the idle ones of others closed.
func TestConnectionsOfAllKindsAreBounded(t *testing.T) {
	const most = enoughToShare
	var s *Store
	var dials, worst atomic.Int64
	s, err := Open(Options{
		Servers: []string{servers.Memcached(t).Addr()}, MaxConnections: most, Gather: 2, Timeout: 10 * time.Second,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conns := s.servers[0].conns
			conns.mu.Lock()
			n := int64(len(conns.live) + conns.dialling)
			conns.mu.Unlock()
			dials.Add(1)
			for w := worst.Load(); n > w && !worst.CompareAndSwap(w, n); w = worst.Load() {
			}
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
	if n := worst.Load(); n > most || n < most {
		t.Errorf("%d connections at a time, want %d, all of which are allowed", n, most)
	}
	t.Logf("%d dials", dials.Load())
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
