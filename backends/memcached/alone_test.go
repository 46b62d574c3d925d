package memcached_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// keysByServer returns n keys of each server.
func keysByServer(t *testing.T, n int, addrs ...string) map[string][]string {
	t.Helper()
	selector, err := memcached.NewSelector(addrs...)
	if err != nil {
		t.Fatal(err)
	}
	keys := make(map[string][]string)
	for i, full := 0, 0; full < len(addrs); i++ {
		key := fmt.Sprint("key", i)
		at, err := selector.PickServer(key)
		if err != nil {
			t.Fatal(err)
		}
		if of := keys[at.String()]; len(of) < n {
			if keys[at.String()] = append(of, key); len(of) == n-1 {
				full++
			}
		}
	}
	return keys
}

// TestC91OneServerOfSeveralFails: its keys fail at once, also where many ask for them, and the
// others' are served as ever; it is asked again soon after it is back.
func TestC91OneServerOfSeveralFails(t *testing.T) {
	for name, fail := range map[string]func(*servers.FaultProxy){
		"it swallows all": (*servers.FaultProxy).BlackHole,
		"it is cut off":   (*servers.FaultProxy).Cut,
	} {
		t.Run(name, func(t *testing.T) {
			proxy := servers.Proxy(t, servers.Memcached(t).Addr())
			addrs := []string{proxy.Addr(), servers.Memcached(t).Addr(), servers.Memcached(t).Addr()}
			s := open(t, memcached.Options{Servers: addrs, MaxConnections: 8, Timeout: 200 * time.Millisecond})
			keys := keysByServer(t, 20, addrs...)
			for _, of := range keys {
				for _, key := range of {
					set(t, s, key, "value", time.Hour)
				}
			}
			var healthy []string
			for _, addr := range addrs[1:] {
				healthy = append(healthy, keys[addr]...)
			}
			fail(proxy)
			ask := func(key string) error {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err := s.Get(ctx, key)
				return err
			}
			alone := func(err error) bool {
				var left *memcached.LeftAloneError
				return errors.As(err, &left) && left.Server == proxy.Addr() && !tier.IsOutage(err)
			}
			// Many ask for its keys, as many as there are connections and more.
			var asking sync.WaitGroup
			for _, key := range keys[proxy.Addr()] {
				asking.Go(func() { _ = ask(key) })
			}
			asking.Wait()
			await(t, "the server is left alone", func() bool { return alone(ask(keys[proxy.Addr()][0])) })

			// One call in a second asks it.
			refused, met := 0, 0
			for start := time.Now(); time.Since(start) < 1500*time.Millisecond; {
				for _, key := range healthy {
					want(t, s, key, "value")
				}
				if err := ask(keys[proxy.Addr()][1]); alone(err) {
					refused++
				} else if met++; err == nil {
					t.Fatal("a server that does not answer has answered")
				}
			}
			if refused == 0 || met > 3 {
				t.Errorf("%d calls were told at once, %d asked the server: want most told, and one a second that asks", refused, met)
			}

			proxy.Restore()
			await(t, "the server is asked again", func() bool { return ask(keys[proxy.Addr()][0]) == nil })
			for _, key := range keys[proxy.Addr()] {
				if err := ask(key); err != nil {
					t.Errorf("after its return: %s: %v", key, err)
				}
			}
		})
	}
}

// TestOneServerIsAlwaysAsked: of one server alone it is the cache's breaker that leaves it
// alone.
func TestOneServerIsAlwaysAsked(t *testing.T) {
	dials := 0
	s := open(t, memcached.Options{Servers: []string{"127.0.0.1:1"}, DialContext: func(context.Context, string, string) (net.Conn, error) {
		dials++
		return nil, errors.New("refused")
	}})
	for range 10 {
		if _, err := s.Get(t.Context(), "key"); err == nil {
			t.Fatal("an answer from nowhere")
		}
	}
	if dials != 10 {
		t.Errorf("%d dials for 10 calls", dials)
	}
}

// TestIdleConnectionsThatDieAreNoFailure: a server that closes connections which have been
// idle, all at once, is asked on new ones.
func TestIdleConnectionsThatDieAreNoFailure(t *testing.T) {
	proxy := servers.Proxy(t, servers.Memcached(t).Addr())
	addrs := []string{proxy.Addr(), servers.Memcached(t).Addr()}
	s := open(t, memcached.Options{Servers: addrs})
	keys := keysByServer(t, 30, addrs...)[proxy.Addr()]
	for range 5 {
		var asking sync.WaitGroup
		for _, key := range keys {
			asking.Go(func() { set(t, s, key, "value", time.Hour) })
		}
		asking.Wait()
		proxy.Cut()
		proxy.Restore()
		for _, key := range keys {
			asking.Go(func() { want(t, s, key, "value") })
		}
		asking.Wait()
	}
}
