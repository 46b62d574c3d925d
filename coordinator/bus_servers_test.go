package coordinator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// member is a cache as of a process of its own, over a real server, with a proxy before
// its bus only.
type member struct {
	*coordinator.Cache[string, int]
	proxy *servers.FaultProxy
}

func newMember(t *testing.T, addr string, load coordinator.Loader[string, int]) *member {
	t.Helper()
	m := &member{proxy: servers.Proxy(t, addr)}
	store, err := redis.Open("redis://"+addr, redis.Options{Prefix: "test:"})
	if err != nil {
		t.Fatal(err)
	}
	bus, err := redis.OpenBus("redis://"+m.proxy.Addr(), redis.BusOptions{Ping: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	m.Cache = newCache(t, coordinator.Options[string, int]{
		Tiers: []tier.Tier[string, int]{
			{Name: "l1", Store: lru.New[string, int](1000)},
			{Name: "l3", Store: tier.Encode[string, int](store, codec.JSON[int]()), Timeout: 2 * time.Second},
		},
		Lifetime:   policy.Lifetime{TTL: time.Hour},
		Backoff:    policy.Backoff{Initial: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		Load:       load,
		Bus:        bus,
		BusOptions: coordinator.BusOptions{Heartbeat: 200 * time.Millisecond},
	})
	m.awaitBus(t, true)
	return m
}

func awaitReal(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

func (m *member) awaitBus(t *testing.T, connected bool) {
	t.Helper()
	awaitReal(t, 15*time.Second, fmt.Sprintf("connected %v", connected), func() bool { return m.Stats().Bus.Connected == connected })
}

func (m *member) read(t *testing.T, key string) int {
	t.Helper()
	v, err := m.Get(ctx, key)
	if err != nil {
		t.Errorf("Get(%s): %v", key, err)
	}
	return v
}

func (m *member) write(t *testing.T, key string, v int) {
	t.Helper()
	if err := m.Set(ctx, key, v); err != nil {
		t.Errorf("Set(%s): %v", key, err)
	}
}

func TestBusOverRedis(t *testing.T) {
	addr := servers.Redis(t).Addr()
	a, b := newMember(t, addr, nil), newMember(t, addr, nil)
	a.write(t, "k", 0)
	awaitReal(t, 10*time.Second, "the publishers have met", func() bool {
		return a.Stats().Bus.Publishers > 0 && b.Stats().Bus.Publishers > 0
	})
	var longest time.Duration
	for v := range 200 {
		a.write(t, "k", v)
		start := time.Now()
		awaitReal(t, 5*time.Second, fmt.Sprint("version ", v), func() bool { return b.read(t, "k") == v })
		longest = max(longest, time.Since(start))
		for range 10 {
			if got := b.read(t, "k"); got != v {
				t.Fatalf("got %d after %d", got, v)
			}
		}
	}
	s := b.Stats()
	t.Logf("converged within %v at most; %+v", longest, s.Bus)
	if s.Tiers[0].Hits < 1000 {
		t.Errorf("%d hits in memory; the test measures something else", s.Tiers[0].Hits)
	}
	if s.Bus.Gaps > 0 {
		t.Errorf("%d gaps", s.Bus.Gaps)
	}
}

// C36 over a real server: the connection is cut, or dies silently, while others write.
func TestC36OverRedis(t *testing.T) {
	for name, fail := range map[string]func(*servers.FaultProxy){"cut": (*servers.FaultProxy).Cut, "black hole": (*servers.FaultProxy).BlackHole} {
		t.Run(name, func(t *testing.T) {
			addr := servers.Redis(t).Addr()
			a, b := newMember(t, addr, nil), newMember(t, addr, nil)
			const keys = 100
			for i := range keys {
				a.write(t, fmt.Sprint(i), 1)
				b.write(t, fmt.Sprint("b", i), 1)
			}
			awaitReal(t, 5*time.Second, "all announced", func() bool { return a.Stats().Bus.Waiting+b.Stats().Bus.Waiting == 0 })
			time.Sleep(100 * time.Millisecond)
			for i := range keys {
				b.read(t, fmt.Sprint(i))
				a.read(t, fmt.Sprint("b", i))
			}
			fail(b.proxy)
			for i := range keys {
				a.write(t, fmt.Sprint(i), 2)
				b.write(t, fmt.Sprint("b", i), 2) // which b cannot tell anybody
			}
			b.awaitBus(t, false)
			for i := range keys {
				if got := b.read(t, fmt.Sprint(i)); got != 2 {
					t.Fatalf("key %d after the loss was noticed: got %d", i, got)
				}
			}
			for i := range keys {
				a.write(t, fmt.Sprint(i), 3)
			}
			b.proxy.Restore()
			b.awaitBus(t, true)
			for i := range keys {
				if got := b.read(t, fmt.Sprint(i)); got != 3 {
					t.Fatalf("key %d after the bus was back: got %d", i, got)
				}
			}
			awaitReal(t, 5*time.Second, "what b wrote", func() bool { return b.Stats().Bus.Waiting == 0 })
			for i := range keys {
				key := fmt.Sprint("b", i)
				awaitReal(t, 5*time.Second, "what b wrote, at a", func() bool { return a.read(t, key) == 2 })
			}
		})
	}
}

// A random history over a real server with cuts of the bus: each process sees its own
// writes at once and no value after a newer one; those whose bus is up see others' writes
// within a bound; and all converge once all buses are up.
func TestBusHistoryOverRedis(t *testing.T) {
	for seed := range uint64(2) { // bench fleet --scenario history takes as many as one likes
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel() // it waits most of its time
			busHistoryOverRedis(t, seed)
		})
	}
}

func busHistoryOverRedis(t *testing.T, seed uint64) {
	const (
		processes, keys = 3, 10
		lasts           = 6 * time.Second
		bound           = 500 * time.Millisecond // for a loaded machine under -race
	)
	var source [keys]atomic.Int64
	load := func(k int) int { return int(source[k].Load()) }
	type write struct {
		version int
		end     time.Time
	}
	var last [keys]atomic.Pointer[write]
	var writers [keys]sync.Mutex
	addr := servers.Redis(t).Addr()
	fleet := make([]*member, processes)
	var upSince [processes]atomic.Int64 // Unix ns; far ahead while cut
	for i := range fleet {
		fleet[i] = newMember(t, addr, func(_ context.Context, key string) (int, error) {
			var k int
			_, err := fmt.Sscan(key, &k)
			return load(k), err
		})
		upSince[i].Store(time.Now().UnixNano())
	}
	stop := time.Now().Add(lasts)
	var clients sync.WaitGroup
	clients.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 1))
		for time.Now().Before(stop) {
			time.Sleep(time.Duration(300+rng.IntN(1500)) * time.Millisecond)
			i := rng.IntN(processes)
			upSince[i].Store(time.Now().Add(time.Hour).UnixNano())
			if rng.IntN(2) == 0 {
				fleet[i].proxy.Cut()
			} else {
				fleet[i].proxy.BlackHole()
			}
			time.Sleep(time.Duration(rng.IntN(800)) * time.Millisecond)
			fleet[i].proxy.Restore()
			deadline := time.Now().Add(10 * time.Second)
			for time.Sleep(500 * time.Millisecond); !fleet[i].Stats().Bus.Connected && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			upSince[i].Store(time.Now().UnixNano())
		}
	})
	var reads, checked atomic.Int64
	for c := range processes * 2 {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(100+c)))
			p, i := fleet[c%processes], c%processes
			var seen [keys]int
			for time.Now().Before(stop) {
				k := rng.IntN(keys)
				key := fmt.Sprint(k)
				if rng.IntN(400) == 0 && writers[k].TryLock() {
					v := int(source[k].Add(1))
					var err error
					if rng.IntN(2) == 0 {
						err = p.Set(ctx, key, v)
					} else {
						err = p.Delete(ctx, key)
					}
					if got := p.read(t, key); err != nil || got != v {
						t.Errorf("Get(%s) after the process's own write of %d: %d, %v", key, v, got, err)
					}
					last[k].Store(&write{v, time.Now()})
					writers[k].Unlock()
				}
				w := last[k].Load()
				start := time.Now()
				got := p.read(t, key)
				reads.Add(1)
				if got < seen[k] {
					t.Errorf("Get(%s) at process %d: %d after %d", key, i, got, seen[k])
				}
				seen[k] = max(seen[k], got)
				// The writer may have been cut off: all must be up for the bound.
				up := start
				for j := range upSince {
					if since := time.Unix(0, upSince[j].Load()); since.After(start.Add(-bound)) {
						up = start.Add(time.Hour)
					}
				}
				if w != nil && up.Equal(start) && start.Sub(w.end) > bound {
					checked.Add(1)
					if got < w.version {
						t.Errorf("Get(%s) at process %d: %d, %v after the write of %d", key, i, got, start.Sub(w.end), w.version)
					}
				}
				time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
			}
		})
	}
	clients.Wait()
	for _, m := range fleet {
		m.awaitBus(t, true)
	}
	for i, m := range fleet {
		for k := range keys {
			want := load(k)
			awaitReal(t, 5*time.Second, fmt.Sprintf("key %d at process %d converged", k, i), func() bool { return m.read(t, fmt.Sprint(k)) == want })
		}
		t.Logf("process %d: %+v", i, m.Stats().Bus)
	}
	t.Logf("%d reads, %d against the bound", reads.Load(), checked.Load())
	if checked.Load() == 0 {
		t.Error("no read was checked against the bound")
	}
}
