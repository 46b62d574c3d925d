package memcached_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/internal/readtest"
	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// keepAll fills a store with values of all kinds, under keys of all kinds; raw is a
// client of the same servers.
func keepAll(t *testing.T, s *memcached.Store, raw *memcache.Client, prefix string) []readtest.Kept {
	t.Helper()
	all := []readtest.Kept{{Key: "big", Value: bytes.Repeat([]byte("big"), 1<<16)}}
	for _, key := range []string{"", " ", "a b", "\x00\r\n", "\xff\xfe", "#sha256#", strings.Repeat("k", 1024)} {
		all = append(all, readtest.Kept{Key: key, Value: []byte("of " + key)})
	}
	for i := range 60 {
		all = append(all, readtest.Kept{Key: fmt.Sprint("some", i), Value: bytes.Repeat([]byte{byte(i)}, i*7)})
		all = append(all, readtest.Kept{Key: fmt.Sprint("none", i)})
	}
	for _, k := range all {
		if k.Value != nil {
			set(t, s, k.Key, string(k.Value), time.Minute)
		}
	}
	for i := range 5 {
		key := fmt.Sprint("foreign", i)
		if err := raw.Set(&memcache.Item{Key: prefix + key, Flags: 7, Value: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		all = append(all, readtest.Kept{Key: key, Bad: true})
	}
	return all
}

func TestGetsThatMeetGiveEachItsOwn(t *testing.T) {
	one, other := servers.Memcached(t).Addr(), servers.Memcached(t).Addr()
	selector, err := memcached.NewSelector(one, other)
	if err != nil {
		t.Fatal(err)
	}
	c := memcache.NewFromSelector(selector)
	c.MaxIdleConns, c.Timeout = readtest.Readers, 20*time.Second // a busy machine is not what is tested
	defer c.Close()
	for name, s := range map[string]*memcached.Store{
		"own client":       open(t, memcached.Options{Servers: []string{one, other}, Prefix: "1:", Timeout: c.Timeout}),
		"another's client": memcached.NewWith(c, memcached.Options{Prefix: "2:"}),
	} {
		t.Run(name, func(t *testing.T) {
			prefix := strings.TrimSuffix(strings.TrimPrefix(s.String(), `memcached(prefix "`), `")`)
			all := keepAll(t, s, c, prefix)
			readtest.Concurrently(t, s, all, 3)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGetsThatMeetAreNotHeldUpByAServerOfOthers has one server of two fall silent:
// the keys of the other are read as before, and at once.
func TestGetsThatMeetAreNotHeldUpByAServerOfOthers(t *testing.T) {
	up, down := servers.Memcached(t), servers.Memcached(t)
	proxy := servers.Proxy(t, down.Addr())
	addrs := []string{up.Addr(), proxy.Addr()}
	selector, err := memcached.NewSelector(addrs...)
	if err != nil {
		t.Fatal(err)
	}
	c := memcache.NewFromSelector(selector)
	c.MaxIdleConns = readtest.Readers
	defer c.Close()
	for name, s := range map[string]*memcached.Store{
		"own client":       open(t, memcached.Options{Servers: addrs, MaxConnections: 4 * readtest.Readers}),
		"another's client": memcached.NewWith(c, memcached.Options{MaxConnections: 4 * readtest.Readers}),
	} {
		for fault, f := range map[string]func(){"black hole": proxy.BlackHole, "down": proxy.Cut} {
			t.Run(name+", "+fault, func(t *testing.T) {
				proxy.Restore()
				var mine, others []string // keys, by server
				for i := 0; len(mine) < readtest.Readers || len(others) < readtest.Readers; i++ {
					key := fmt.Sprint("key", i)
					if addr, _ := selector.PickServer(key); addr.String() == up.Addr() {
						mine = append(mine, key)
					} else {
						others = append(others, key)
					}
				}
				for i, key := range mine {
					if i%2 == 0 { // the rest is missing
						set(t, s, key, key, time.Minute)
					}
				}
				f()
				var wg sync.WaitGroup
				stop := make(chan struct{})
				for i := range readtest.Readers {
					wg.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
							}
							ctx, cancel := context.WithTimeout(t.Context(), time.Second)
							if _, err := s.Get(ctx, others[i]); err == nil {
								t.Error("a server that is silent has answered")
							}
							cancel()
						}
					})
				}
				for range 20 {
					for i, key := range mine[:readtest.Readers] {
						value, err := s.Get(t.Context(), key)
						if want := key; err != nil || i%2 == 0 && string(value) != want || i%2 == 1 && value != nil {
							t.Errorf("%s on the other server: got %q, %v", key, value, err)
						}
					}
				}
				close(stop)
				wg.Wait()
			})
		}
	}
}

func TestC59AConnectionIsCutUnderARoundTripOfMany(t *testing.T) {
	addr := servers.Memcached(t).Addr()
	p := servers.Proxy(t, addr)
	s := open(t, memcached.Options{Servers: []string{p.Addr()}, Timeout: 20 * time.Second})
	raw := memcache.New(addr)
	defer raw.Close()
	all := keepAll(t, s, raw, "")
	for range 10 {
		var wg sync.WaitGroup
		var failed, right atomic.Int64
		for i := range readtest.Readers {
			wg.Go(func() {
				k := all[i%len(all)]
				value, err := s.Get(t.Context(), k.Key)
				switch checked := k.Check(value, err); {
				case checked == nil:
					right.Add(1)
				case err == nil || errors.Is(err, tier.ErrUnreadable):
					t.Error(checked) // a wrong answer
				default:
					failed.Add(1)
				}
			})
		}
		p.Reset()
		wg.Wait()
		if failed.Load()+right.Load() != readtest.Readers {
			t.Errorf("%d reads failed and %d are right, of %d", failed.Load(), right.Load(), readtest.Readers)
		}
		p.Reset() // all idle connections are dead now; no read shall notice
		readtest.Concurrently(t, s, all[:20], 1)
	}
}

func TestC46GetsThatMeetInABlackHoleLeaveOnTime(t *testing.T) {
	p := servers.Proxy(t, servers.Memcached(t).Addr())
	s := open(t, memcached.Options{Servers: []string{p.Addr()}, Timeout: time.Second})
	set(t, s, "k", "v", time.Minute)
	p.Delay(300 * time.Millisecond)
	var wg sync.WaitGroup
	for i := range readtest.Readers {
		wg.Go(func() {
			if i%2 == 0 { // patient ones share their round trips with those who leave
				want(t, s, "k", "v")
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
			defer cancel()
			begun := time.Now()
			if _, err := s.Get(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v, want the context's", err)
			}
			if took := time.Since(begun); took > 25*time.Millisecond+late {
				t.Errorf("left after %v", took)
			}
		})
	}
	wg.Wait()
	p.BlackHole()
	for range readtest.Readers {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
			defer cancel()
			if _, err := s.Get(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("black hole: got error %v, want the context's", err)
			}
		})
	}
	wg.Wait()
	p.Restore()
	await(t, "an answer once the network is back", func() bool { _, err := s.Get(t.Context(), "k"); return err == nil })
}
