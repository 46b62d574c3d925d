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

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// kept is a key with what a Get of it is to give.
type kept struct {
	key   string
	value []byte // nil: nothing
	bad   bool   // unreadable
}

// keepAll fills a store with values of all kinds, under keys of all kinds; raw is a
// client of the same servers.
func keepAll(t *testing.T, s *memcached.Store, raw *memcache.Client, prefix string) []kept {
	t.Helper()
	all := []kept{{key: "big", value: bytes.Repeat([]byte("big"), 1<<16)}}
	for _, key := range []string{"", " ", "a b", "\x00\r\n", "\xff\xfe", "#sha256#", strings.Repeat("k", 1024)} {
		all = append(all, kept{key: key, value: []byte("of " + key)})
	}
	for i := range 60 {
		all = append(all, kept{key: fmt.Sprint("some", i), value: bytes.Repeat([]byte{byte(i)}, i*7)})
		all = append(all, kept{key: fmt.Sprint("none", i)})
	}
	for _, k := range all {
		if k.value != nil {
			set(t, s, k.key, string(k.value), time.Minute)
		}
	}
	for i := range 5 {
		key := fmt.Sprint("foreign", i)
		if err := raw.Set(&memcache.Item{Key: prefix + key, Flags: 7, Value: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		all = append(all, kept{key: key, bad: true})
	}
	return all
}

func (k kept) check(value []byte, err error) error {
	switch {
	case k.bad && errors.Is(err, tier.ErrUnreadable) && value == nil:
		return nil
	case k.bad || err != nil:
		return errors.Join(fmt.Errorf("%.20q: got %d bytes", k.key, len(value)), err)
	case !bytes.Equal(value, k.value) || (value == nil) != (k.value == nil):
		return fmt.Errorf("%.20q: got %d bytes, want %d: another's, or damaged", k.key, len(value), len(k.value))
	default:
		return nil
	}
}

// readers is how many read at a time.
const readers = 64

// readConcurrently has many readers read all keys, each from another on, and checks
// what they get.
func readConcurrently(t *testing.T, s *memcached.Store, all []kept, rounds int) {
	t.Helper()
	var wg sync.WaitGroup
	for r := range readers {
		wg.Go(func() {
			for i := range rounds * len(all) {
				k := all[(r*5+i)%len(all)]
				value, err := s.Get(t.Context(), k.key)
				if err := k.check(value, err); err != nil {
					t.Error(err)
					return
				}
				for i := range value {
					value[i] ^= 0xff // it is ours: nobody else may see this
				}
			}
		})
	}
	wg.Wait()
}

func TestGetsThatMeetGiveEachItsOwn(t *testing.T) {
	one, other := servers.Memcached(t).Addr(), servers.Memcached(t).Addr()
	selector, err := memcached.NewSelector(one, other)
	if err != nil {
		t.Fatal(err)
	}
	c := memcache.NewFromSelector(selector)
	c.MaxIdleConns, c.Timeout = readers, 20*time.Second // a busy machine is not what is tested
	defer c.Close()
	for name, s := range map[string]*memcached.Store{
		"own client":       open(t, memcached.Options{Servers: []string{one, other}, Prefix: "1:", Timeout: c.Timeout}),
		"another's client": memcached.NewWith(c, memcached.Options{Prefix: "2:"}),
	} {
		t.Run(name, func(t *testing.T) {
			prefix := strings.TrimSuffix(strings.TrimPrefix(s.String(), `memcached(prefix "`), `")`)
			all := keepAll(t, s, c, prefix)
			readConcurrently(t, s, all, 3)
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
	c.MaxIdleConns = readers
	defer c.Close()
	for name, s := range map[string]*memcached.Store{
		"own client":       open(t, memcached.Options{Servers: addrs, MaxConnections: 4 * readers}),
		"another's client": memcached.NewWith(c, memcached.Options{MaxConnections: 4 * readers}),
	} {
		for fault, f := range map[string]func(){"black hole": proxy.BlackHole, "down": proxy.Cut} {
			t.Run(name+", "+fault, func(t *testing.T) {
				proxy.Restore()
				var mine, others []string // keys, by server
				for i := 0; len(mine) < readers || len(others) < readers; i++ {
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
				for i := range readers {
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
					for i, key := range mine[:readers] {
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
		for i := range readers {
			wg.Go(func() {
				k := all[i%len(all)]
				value, err := s.Get(t.Context(), k.key)
				switch checked := k.check(value, err); {
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
		if failed.Load()+right.Load() != readers {
			t.Errorf("%d reads failed and %d are right, of %d", failed.Load(), right.Load(), readers)
		}
		p.Reset() // all idle connections are dead now; no read shall notice
		readConcurrently(t, s, all[:20], 1)
	}
}

func TestC46GetsThatMeetInABlackHoleLeaveOnTime(t *testing.T) {
	p := servers.Proxy(t, servers.Memcached(t).Addr())
	s := open(t, memcached.Options{Servers: []string{p.Addr()}, Timeout: time.Second})
	set(t, s, "k", "v", time.Minute)
	p.Delay(300 * time.Millisecond)
	var wg sync.WaitGroup
	for i := range readers {
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
	for range readers {
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
