package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// remote is a kind of server for the bottom tier.
type remote struct {
	name  string
	start func(t *testing.T, args ...string) *servers.Server
	open  func(t *testing.T, addr string) tier.Bytes
}

// go-redis logs each failed dial to standard error.
func init() { goredis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var remotes = []remote{
	{
		name:  "redis",
		start: func(t *testing.T, args ...string) *servers.Server { return servers.Redis(t, args...) },
		open: func(t *testing.T, addr string) tier.Bytes {
			b, err := redis.Open("redis://"+addr, redis.Options{Prefix: "test:"})
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
	},
	{
		name:  "memcached",
		start: func(t *testing.T, args ...string) *servers.Server { return servers.Memcached(t, args...) },
		open: func(t *testing.T, addr string) tier.Bytes {
			b, err := memcached.Open(memcached.Options{Servers: []string{addr}, Prefix: "test:"})
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
	},
}

func eachRemote(t *testing.T, f func(t *testing.T, r remote)) {
	for _, r := range remotes {
		t.Run(r.name, func(t *testing.T) { f(t, r) })
	}
}

// full is a cache of three tiers over a real server, and its parts.
type full struct {
	*coordinator.Cache[string, string]
	l1 *lru.Store[string, string]
	l2 *ristretto.Store[string, string]
	l3 tier.Bytes
	origin
}

// drop empties the tiers in memory.
func (f *full) drop(t *testing.T) {
	t.Helper()
	if err := errors.Join(f.l1.Clear(ctx), f.l2.Clear(ctx)); err != nil {
		t.Fatal(err)
	}
}

func newFull(t *testing.T, b tier.Bytes, lifetime policy.Lifetime) *full {
	t.Helper()
	f := &full{
		l1: lru.New[string, string](1000),
		l2: ristretto.New[string, string](ristretto.Options[string, string]{MaxCost: 1 << 20}),
		l3: b,
	}
	f.Cache = newCache(t, coordinator.Options[string, string]{
		Tiers: []tier.Tier[string, string]{
			{Name: "l1", Store: f.l1}, {Name: "l2", Store: f.l2},
			{Name: "l3", Store: tier.Encode[string, string](b, codec.JSON[string]()), Timeout: 2 * time.Second},
		},
		Lifetime: lifetime,
		Backoff:  policy.Backoff{Initial: 10 * time.Millisecond, Max: 50 * time.Millisecond},
		Load: func(_ context.Context, key string) (string, error) {
			defer f.enter()()
			return "value of " + key, nil
		},
	})
	return f
}

// A full chain: load, fill, promotion with the life that is left, on two nodes.
func TestChainOverServers(t *testing.T) {
	eachRemote(t, func(t *testing.T, r remote) {
		addr := r.start(t).Addr()
		lifetime := policy.Lifetime{TTL: time.Minute}
		a, b := newFull(t, r.open(t, addr), lifetime), newFull(t, r.open(t, addr), lifetime)
		wantGet(t, a.Cache, "k", "value of k")
		for i, want := range []string{"l3", "l1", "l1"} {
			res, err := b.Lookup(ctx, "k")
			if err != nil || res.Value != "value of k" || res.Tier != want || res.State != coordinator.Fresh {
				t.Errorf("look-up %d on b: got %+v, %v, want tier %s", i, res, err, want)
			}
		}
		if err := b.l1.Clear(ctx); err != nil {
			t.Fatal(err)
		}
		before, err := b.Lookup(ctx, "k")
		if err != nil || before.Tier != "l2" {
			t.Errorf("after dropping l1: got %+v, %v", before, err)
		}
		wantCalls(t, &a.origin, 1)
		wantCalls(t, &b.origin, 0)

		e1, err := b.l1.Get(ctx, "k")
		if err != nil || e1 == nil {
			t.Fatal("l1 was not filled", err)
		}
		if left := e1.UsableUntil().Sub(tier.Now()); left > time.Minute || left < 50*time.Second {
			t.Errorf("life left after two promotions: %v", left)
		}
		if err := b.Delete(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		a.drop(t)
		wantGet(t, a.Cache, "k", "value of k")
		wantCalls(t, &a.origin, 2)
	})
}

// C54 and T1 over real servers: a life of less than a second, and the exact end.
func TestC54ShortLifeOverServers(t *testing.T) {
	eachRemote(t, func(t *testing.T, r remote) {
		f := newFull(t, r.open(t, r.start(t).Addr()), policy.Lifetime{TTL: 300 * time.Millisecond})
		wantGet(t, f.Cache, "k", "value of k")
		end := tier.Now().Add(300 * time.Millisecond)
		for tier.Now() < end {
			f.drop(t)
			if res, err := f.Peek(ctx, "k"); err == nil && res.Age > 300*time.Millisecond {
				t.Errorf("got %+v past its life", res)
			}
			time.Sleep(20 * time.Millisecond)
		}
		f.drop(t)
		wantGet(t, f.Cache, "k", "value of k")
		if got := f.calls.Load(); got < 2 {
			t.Errorf("loads: got %d, want a second one", got)
		}
	})
}

// The server is restarted in the middle: no error reaches a reader, and afterwards
// it is used again.
func TestServerRestarts(t *testing.T) {
	eachRemote(t, func(t *testing.T, r remote) {
		server := r.start(t)
		f := newFull(t, r.open(t, server.Addr()), policy.Lifetime{TTL: time.Minute})
		read := func(n int) {
			t.Helper()
			for i := range n {
				key := fmt.Sprint("k", i)
				wantGet(t, f.Cache, key, "value of "+key)
			}
		}
		read(20)
		f.drop(t)
		server.Stop()
		read(20) // loads
		if got := f.calls.Load(); got != 40 {
			t.Errorf("loads: got %d, want 40", got)
		}
		var w *coordinator.WriteError
		if err := f.Set(ctx, "k0", "set"); !errors.As(err, &w) || len(w.Tiers) != 1 || w.Tiers[0].Tier != "l3" {
			t.Errorf("Set: got %v, want a WriteError of l3", err)
		}
		if err := f.Delete(ctx, "k1"); !errors.As(err, &w) {
			t.Errorf("Delete: got %v, want a WriteError", err)
		}
		f.drop(t)
		wantGet(t, f.Cache, "k0", "set") // the write waits to be told to l3
		wantGet(t, f.Cache, "k1", "value of k1")
		server.Start()
		eventually(t, "l3 has been told", func() bool { return f.Stats().Tiers[2].Pending == 0 })
		f.drop(t)
		res, err := f.Lookup(ctx, "k0")
		if err != nil || res.Value != "set" || res.Tier != "l3" {
			t.Errorf("after the restart: got %+v, %v", res, err)
		}
		if got := f.Stats().Errors; got != 0 {
			t.Errorf("errors of requests: got %d", got)
		}
	})
}

// eventually waits for an event, looking often, for 10 seconds at most.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in 10 s: %s", what)
		}
	}
}

// C57, S2: bytes that cannot be read are a miss, counted, and overwritten at once.
func TestC57UnreadableBytes(t *testing.T) {
	eachRemote(t, func(t *testing.T, r remote) {
		addr := r.start(t).Addr()
		other := r.open(t, addr)
		defer other.Close()
		f := newFull(t, r.open(t, addr), policy.Lifetime{TTL: time.Minute})
		wantGet(t, f.Cache, "k", "value of k")
		good, err := other.Get(ctx, "k")
		if err != nil || good == nil {
			t.Fatal(err)
		}
		change := func(edit func(b []byte) []byte) []byte { return edit(append([]byte(nil), good...)) }
		ints := tier.Encode[string, int](r.open(t, addr), codec.JSON[int]())
		defer ints.Close()
		now := tier.Now()
		if err := ints.Set(ctx, "k", tier.NewEntry(7, tier.Meta{LoadedAt: now, FreshUntil: tier.Never, UsableUntil: tier.Never}), time.Hour); err != nil {
			t.Fatal(err)
		}
		otherType, err := other.Get(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		for name, bad := range map[string][]byte{
			"empty":            {},
			"one byte":         {0xC7},
			"random":           []byte("\x91\x1b\xf1 some random bytes \x00\xff that are longer than a header is, by far"),
			"truncated":        good[:len(good)-1],
			"header only":      good[:48],
			"unknown version":  change(func(b []byte) []byte { b[1] = 9; return b }),
			"unknown flags":    change(func(b []byte) []byte { b[2] |= 0x80; return b }),
			"one bit flipped":  change(func(b []byte) []byte { b[len(b)-2] ^= 4; return b }),
			"other type":       otherType,
			"plain JSON":       []byte(`"value of k"`),
			"another's JSON":   []byte(`{"name":"k","id":1}`),
			"gzip header only": {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3},
		} {
			t.Run(name, func(t *testing.T) {
				if err := other.Set(ctx, "k", bad, time.Hour); err != nil {
					t.Fatal(err)
				}
				f.drop(t)
				calls, unreadable := f.calls.Load(), f.Stats().Tiers[2].Unreadable
				wantGet(t, f.Cache, "k", "value of k")
				wantCalls(t, &f.origin, calls+1)
				if got := f.Stats().Tiers[2].Unreadable; got != unreadable+1 {
					t.Errorf("unreadable: got %d more, want 1", got-unreadable)
				}
				f.drop(t)
				res, err := f.Lookup(ctx, "k")
				if err != nil || res.Tier != "l3" || res.Value != "value of k" {
					t.Errorf("not overwritten: got %+v, %v", res, err)
				}
			})
		}
	})
}

// C19 over Redis: another program has taken the key's expiry away. The entry still
// ends when its own life does.
func TestC19PersistedKey(t *testing.T) {
	addr := servers.Redis(t).Addr()
	raw := goredis.NewClient(&goredis.Options{Addr: addr})
	defer raw.Close()
	for _, p := range []policy.Strategy{policy.Fixed{}, policy.StaleWhileRevalidate{}, policy.XFetch{}} {
		t.Run(policy.NameOf(p), func(t *testing.T) {
			f := newFull(t, remotes[0].open(t, addr), policy.Lifetime{TTL: time.Hour, StaleWhileRevalidate: time.Minute})
			if err := f.SetPolicy(p); err != nil {
				t.Fatal(err)
			}
			key := "k " + policy.NameOf(p)
			wantGet(t, f.Cache, key, "value of "+key)
			if err := raw.Persist(ctx, "test:"+key).Err(); err != nil {
				t.Fatal(err)
			}
			for range 100 {
				f.drop(t)
				wantGet(t, f.Cache, key, "value of "+key)
			}
			wantCalls(t, &f.origin, 1)
		})
	}
}

// C43: Clear leaves what belongs to others, in this database and in another.
func TestC43ClearLeavesOthers(t *testing.T) {
	addr := servers.Redis(t).Addr()
	foreign := map[int][]string{0: {"foreign", "test", "tes", "xtest:k", "TEST:k"}, 3: {"foreign", "test:k"}}
	for db, keys := range foreign {
		raw := goredis.NewClient(&goredis.Options{Addr: addr, DB: db})
		defer raw.Close()
		for _, k := range keys {
			if err := raw.Set(ctx, k, "theirs", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	f := newFull(t, remotes[0].open(t, addr), policy.Lifetime{TTL: time.Hour})
	for i := range 2500 {
		wantGet(t, f.Cache, fmt.Sprint(i), fmt.Sprint("value of ", i))
	}
	if err := f.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 2500 {
		if r, err := f.Peek(ctx, fmt.Sprint(i)); err == nil {
			t.Fatalf("%s still has %d: %q", r.Tier, i, r.Value)
		}
	}
	for db, keys := range foreign {
		raw := goredis.NewClient(&goredis.Options{Addr: addr, DB: db})
		defer raw.Close()
		n, err := raw.Exists(ctx, keys...).Result()
		if err != nil || int(n) != len(keys) {
			t.Errorf("database %d: %d of %d foreign keys are left, %v", db, n, len(keys), err)
		}
	}
}

// A tier that cannot be cleared is named, and not trusted for what it has from
// before.
func TestClearWithoutTheCapability(t *testing.T) {
	f := newFull(t, remotes[1].open(t, servers.Memcached(t).Addr()), policy.Lifetime{TTL: time.Hour})
	wantGet(t, f.Cache, "k", "value of k")
	err := f.Clear(ctx)
	var w *coordinator.WriteError
	if !errors.As(err, &w) || len(w.Tiers) != 1 || w.Tiers[0].Tier != "l3" || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Clear: got %v", err)
	}
	if r, err := f.Peek(ctx, "k"); err == nil {
		t.Errorf("%s still has %q", r.Tier, r.Value)
	}
	wantGet(t, f.Cache, "k", "value of k")
	wantCalls(t, &f.origin, 2)
	wantGet(t, f.Cache, "k", "value of k")
	wantCalls(t, &f.origin, 2)
}

// C53, S3: keys of every kind over real servers, and none meets another.
func TestC53KeysOverServers(t *testing.T) {
	eachRemote(t, func(t *testing.T, r remote) {
		f := newFull(t, r.open(t, r.start(t).Addr()), policy.Lifetime{TTL: time.Hour})
		keys := []string{"", " ", "a b", "\n", "\r\nflush_all\r\n", "\x00", "\xff\xfe", strings.Repeat("x", 250), strings.Repeat("x", 251),
			strings.Repeat("日", 84), strings.Repeat("y", 245), strings.Repeat("y", 246), strings.Repeat("z", 1024), "*", "k", "K"}
		for _, k := range keys {
			if err := f.Set(ctx, k, fmt.Sprintf("set %q", k)); err != nil {
				t.Errorf("Set(%.20q): %v", k, err)
			}
		}
		f.drop(t)
		for _, k := range keys {
			res, err := f.Lookup(ctx, k)
			if err != nil || res.Value != fmt.Sprintf("set %q", k) || res.Tier != "l3" {
				t.Errorf("Lookup(%.20q): got %.40q from %q, %v", k, res.Value, res.Tier, err)
			}
		}
		for _, k := range keys {
			if err := f.Delete(ctx, k); err != nil {
				t.Errorf("Delete(%.20q): %v", k, err)
			}
			if _, err := f.Peek(ctx, k); !errors.Is(err, coordinator.ErrMiss) {
				t.Errorf("Peek(%.20q) after Delete: got %v", k, err)
			}
		}
	})
}

// C59: the server has closed the idle connection; no reader sees it.
func TestC59IdleConnectionClosed(t *testing.T) {
	eachRemote(t, func(t *testing.T, r remote) {
		server := r.start(t)
		proxy := servers.Proxy(t, server.Addr())
		f := newFull(t, r.open(t, proxy.Addr()), policy.Lifetime{TTL: time.Hour})
		wantGet(t, f.Cache, "k", "value of k")
		for range 5 {
			proxy.Reset() // cuts what is open; new connections are let through
			f.drop(t)
			res, err := f.Lookup(ctx, "k")
			if err != nil || res.Tier != "l3" {
				t.Errorf("got %+v, %v, want a hit in l3", res, err)
			}
		}
		if got := f.Stats().Tiers[2].Errors; got != 0 {
			t.Errorf("errors of the tier: got %d", got)
		}
	})
}

// C49 with a real server's own replies.
func TestC49RedisRejectsWrites(t *testing.T) {
	server := servers.Redis(t, "--maxmemory", "1mb", "--maxmemory-policy", "noeviction")
	raw := goredis.NewClient(&goredis.Options{Addr: server.Addr()})
	defer raw.Close()
	f := newFull(t, remotes[0].open(t, server.Addr()), policy.Lifetime{TTL: time.Hour})
	wantGet(t, f.Cache, "old", "value of old")
	if err := raw.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil { // OOM for every write from now on
		t.Fatal(err)
	}
	wantGet(t, f.Cache, "k", "value of k")
	wantGet(t, f.Cache, "k", "value of k")
	wantCalls(t, &f.origin, 2)
	err := f.Set(ctx, "old", "new")
	var w *coordinator.WriteError
	if !errors.As(err, &w) || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("Set: got %v, want a WriteError with the server's reason", err)
	}
	f.drop(t)
	wantGet(t, f.Cache, "old", "new")
	if n, err := raw.Exists(ctx, "test:old").Result(); err != nil || n != 0 {
		t.Errorf("the server still has the older value (%d, %v)", n, err)
	}
}
