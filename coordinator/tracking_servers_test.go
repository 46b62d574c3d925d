package coordinator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// trackedPrefix is that of the caches' keys.
const trackedPrefix = "test:"

// newTrackedMember is newMember with tracking in place of a bus, and all of it behind the
// proxy.
func newTrackedMember(t *testing.T, addr string, load coordinator.Loader[string, int]) *member {
	t.Helper()
	m := &member{proxy: servers.Proxy(t, addr)}
	store, err := redis.Open("redis://"+m.proxy.Addr(), redis.Options{Prefix: trackedPrefix, Tracking: redis.TrackingOptions{Ping: 100 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	m.Cache = newCache(t, coordinator.Options[string, int]{
		Tiers: []tier.Tier[string, int]{
			{Name: "l1", Store: lru.New[string, int](1000)},
			{Name: "l2", Store: lru.New[string, int](1000)},
			{Name: "l3", Store: tier.Encode[string, int](store, codec.JSON[int]()), Timeout: 2 * time.Second},
		},
		Lifetime: policy.Lifetime{TTL: time.Hour},
		Backoff:  policy.Backoff{Initial: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		Load:     load,
		Track:    true,
	})
	m.awaitTracking(t, true)
	return m
}

func (m *member) awaitTracking(t *testing.T, connected bool) {
	t.Helper()
	awaitReal(t, 15*time.Second, fmt.Sprintf("connected %v", connected), func() bool { return m.Stats().Tracking.Connected == connected })
	m.awaitClear(t)
}

// awaitClear waits until nothing is cleared any more of what the tiers in memory hold.
func (m *member) awaitClear(t *testing.T) {
	t.Helper()
	awaitReal(t, 5*time.Second, "the tiers in memory are clear", func() bool { return !coordinator.ClearsUp(m.Cache) })
}

// quietTracking waits until the cache has been told of all that was written by now.
func (m *member) quietTracking(t *testing.T) {
	t.Helper()
	quiet, last := 0, uint64(0)
	awaitReal(t, 15*time.Second, "no change is told any more", func() bool {
		s := m.Stats().Tracking
		if quiet++; s.Doubtful > 0 || s.Changes != last {
			quiet, last = 0, s.Changes
		}
		return quiet >= 20
	})
}

// peekTier returns which tier has the key.
func (m *member) peekTier(key string) string {
	r, err := m.Peek(ctx, key)
	if err != nil {
		return ""
	}
	return r.Tier
}

func foreignClient(t *testing.T, addr string) *goredis.Client {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: addr, Protocol: 2})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A program that knows nothing of us writes; what the tiers in memory hold goes.
func TestTrackingOfForeignWrites(t *testing.T) {
	addr := servers.Redis(t).Addr()
	foreign := foreignClient(t, addr)
	m := newTrackedMember(t, addr, func(context.Context, string) (int, error) { return 7, nil })
	var longest time.Duration
	for name, write := range map[string]func(key string) error{
		"SET":     func(key string) error { return foreign.Set(ctx, key, "no entry", 0).Err() },
		"DEL":     func(key string) error { return foreign.Del(ctx, key).Err() },
		"PEXPIRE": func(key string) error { return foreign.PExpire(ctx, key, 5*time.Millisecond).Err() },
		"RENAME":  func(key string) error { return foreign.Rename(ctx, key, key+"2").Err() },
		"FLUSHDB": func(string) error { return foreign.FlushDB(ctx).Err() },
		"a transaction": func(key string) error {
			_, err := foreign.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				p.Del(ctx, key)
				p.Set(ctx, key, "x", time.Minute)
				return nil
			})
			return err
		},
		"a script": func(key string) error {
			return foreign.Eval(ctx, "return redis.call('unlink', KEYS[1])", []string{key}).Err()
		},
	} {
		for _, origin := range []string{"a Set", "a load", "a fill"} {
			key := fmt.Sprintf("%s after %s", name, origin)
			m.awaitClear(t) // after FLUSHDB
			switch origin {
			case "a Set":
				m.write(t, key, 1)
			case "a load":
				m.read(t, key)
			default:
				other := newTrackedMember(t, addr, nil)
				other.write(t, key, 1)
				m.quietTracking(t)
				m.read(t, key)
			}
			m.quietTracking(t)
			if got := m.peekTier(key); got != "l1" {
				t.Fatalf("%s: it is in %q before; %+v", key, got, m.Stats().Tracking)
			}
			if err := write(trackedPrefix + key); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			start := time.Now()
			awaitReal(t, 5*time.Second, key, func() bool { return m.peekTier(key) == "" })
			longest = max(longest, time.Since(start))
			if got := m.read(t, key); got != 7 {
				t.Errorf("%s: read %d, want what the origin has", key, got)
			}
		}
	}
	t.Logf("gone within %v at most; %+v", longest, m.Stats().Tracking)
}

// What a process has written itself it reads from memory from then on.
func TestTrackingKeepsOwnWritesOverRedis(t *testing.T) {
	addr := servers.Redis(t).Addr()
	m := newTrackedMember(t, addr, func(context.Context, string) (int, error) { return 7, nil })
	const keys = 200
	for i := range keys {
		m.write(t, fmt.Sprint("set ", i), 1)
		m.read(t, fmt.Sprint("load ", i))
	}
	m.quietTracking(t)
	for i := range keys {
		for _, key := range []string{fmt.Sprint("set ", i), fmt.Sprint("load ", i)} {
			if got := m.peekTier(key); got != "l1" {
				t.Fatalf("%s is in %q, want l1; %+v", key, got, m.Stats().Tracking)
			}
		}
	}
	s := m.Stats().Tracking
	if s.Own < 2*keys || s.Applied > 0 || s.Overflows > 0 {
		t.Errorf("stats: %+v", s)
	}
	t.Logf("%d writes, %d looks", 2*keys, s.Looks)
}

// Four processes without a bus converge, whichever of them writes.
func TestTrackingConvergesOverRedis(t *testing.T) {
	addr := servers.Redis(t).Addr()
	fleet := make([]*member, 4)
	for i := range fleet {
		fleet[i] = newTrackedMember(t, addr, nil)
	}
	var longest time.Duration
	for v := range 100 {
		fleet[v%4].write(t, "k", v)
		start := time.Now()
		for i, m := range fleet {
			awaitReal(t, 5*time.Second, fmt.Sprintf("version %d at process %d", v, i), func() bool { return m.read(t, "k") == v })
		}
		longest = max(longest, time.Since(start))
		for i, m := range fleet {
			if got := m.read(t, "k"); got != v {
				t.Fatalf("process %d: got %d after %d", i, got, v)
			}
		}
	}
	t.Logf("converged within %v at most", longest)
}

// C36: what is missed while the connection is cut, or dies silently, or is killed, is not
// kept.
func TestC36TrackingOverRedis(t *testing.T) {
	addr := servers.Redis(t).Addr()
	foreign := foreignClient(t, addr)
	for name, fail := range map[string]func(*member){
		"cut":        func(m *member) { m.proxy.Cut() },
		"black hole": func(m *member) { m.proxy.BlackHole() },
		"killed": func(*member) {
			if err := foreign.Do(ctx, "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTrackedMember(t, addr, func(context.Context, string) (int, error) { return 7, nil })
			m.write(t, "k", 1)
			m.quietTracking(t)
			if got := m.read(t, "k"); got != 1 {
				t.Fatalf("got %d", got)
			}
			before := m.Stats().Tracking.Gaps
			fail(m)
			if err := foreign.Del(ctx, trackedPrefix+"k").Err(); err != nil {
				t.Fatal(err)
			}
			awaitReal(t, 10*time.Second, "the loss", func() bool { return m.Stats().Tracking.Gaps > before })
			m.proxy.Restore()
			m.awaitTracking(t, true)
			awaitReal(t, 5*time.Second, "the origin's value", func() bool {
				v, err := m.Get(ctx, "k")
				return err == nil && v == 7
			})
		})
	}
}
