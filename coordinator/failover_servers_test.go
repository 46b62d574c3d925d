package coordinator_test

import (
	"context"
	"fmt"
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

// failover is what a cache with lease, breaker and bus has to live through when a master
// dies and its replica takes its place.
type failover struct {
	url    string
	kill   func()        // the master
	within time.Duration // until all is as before
}

// A Cluster's master is killed: its replica is elected, and what was sharded to it goes on
// there.
func TestClusterFailover(t *testing.T) {
	t.Parallel() // with each other: they wait for elections
	nodes := servers.RedisCluster(t, 3)
	servers.RedisClusterReplica(t, nodes[1])
	survive(t, failover{
		url:    "redis+cluster://" + nodes[0].Addr() + "?addr=" + nodes[2].Addr(),
		kill:   nodes[1].Kill,
		within: 20 * time.Second,
	})
}

// A Sentinel makes the replica of a master that was killed the new one.
func TestSentinelFailoverUnderACache(t *testing.T) {
	t.Parallel() // with each other: they wait for elections
	master := servers.Redis(t)
	servers.RedisReplica(t, master)
	sentinel := servers.RedisSentinel(t, master, "main", 1)
	survive(t, failover{
		url:    "redis+sentinel://" + sentinel.Addr() + "/0?master_name=main",
		kill:   master.Kill,
		within: 20 * time.Second,
	})
}

func survive(t *testing.T, f failover) {
	const keys = 60
	var versions [keys]atomic.Int64
	var loads atomic.Int64
	join := func() *coordinator.Cache[string, int] {
		store, err := redis.Open(f.url, redis.Options{Prefix: "test:"})
		if err != nil {
			t.Fatal(err)
		}
		bus, err := redis.OpenBus(f.url, redis.BusOptions{Ping: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = bus.Close() })
		return newCache(t, coordinator.Options[string, int]{
			Name: "failover",
			Tiers: []tier.Tier[string, int]{
				{Name: "l1", Store: lru.New[string, int](1000), TTL: 200 * time.Millisecond},
				{Name: "l2", Store: tier.Encode[string, int](store, codec.JSON[int]()), Timeout: 200 * time.Millisecond, Breaker: tier.Breaker{Probe: 200 * time.Millisecond}},
			},
			Lifetime: policy.Lifetime{TTL: time.Hour},
			Backoff:  policy.Backoff{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond},
			Lease:    coordinator.Lease{Life: time.Second},
			Load: func(_ context.Context, key string) (int, error) {
				loads.Add(1)
				var k int
				_, err := fmt.Sscan(key, &k)
				return int(versions[k].Load()), err
			},
			Bus: bus,
		})
	}
	a, b := join(), join()
	connected := func() bool { return a.Stats().Bus.Connected && b.Stats().Bus.Connected }
	awaitReal(t, 10*time.Second, "both have the bus", connected)
	for k := range keys {
		if err := a.Set(ctx, fmt.Sprint(k), 0); err != nil {
			t.Fatalf("Set: %v", err)
		}
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	end := sync.OnceFunc(func() {
		close(stop)
		readers.Wait()
	})
	defer end()
	var reads atomic.Int64
	var slowest atomic.Int64
	for i, c := range []*coordinator.Cache[string, int]{a, b, a, b} {
		readers.Go(func() {
			for k := i; ; k++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				start := time.Now()
				if _, err := c.Get(ctx, fmt.Sprint(k%keys)); err != nil {
					t.Errorf("Get: %v", err)
				}
				slowest.Store(max(slowest.Load(), int64(time.Since(start))))
				reads.Add(1)
			}
		})
	}
	f.kill()
	began := time.Now()
	missed := 0
	for k := range keys { // while nobody has taken the master's place yet
		versions[k].Store(1)
		if err := a.Set(ctx, fmt.Sprint(k), 1); err != nil {
			missed++
		}
	}
	if missed == 0 {
		t.Error("no write has missed the tier: the master was of no use")
	}
	left := func() time.Duration { return f.within - time.Since(began) }
	defer func() {
		if t.Failed() {
			t.Logf("%+v", a.Stats())
		}
	}()
	awaitReal(t, left(), "all that was written has arrived", func() bool { return a.Stats().Tiers[1].Pending == 0 && a.Stats().Bus.Waiting == 0 })
	arrived := time.Since(began)
	awaitReal(t, left(), "both have the bus again", connected)
	awaitReal(t, left(), "what one writes the other reads", func() bool {
		for k := range keys {
			if a.Set(ctx, fmt.Sprint(k), int(versions[k].Add(1))) != nil {
				return false
			}
		}
		return true
	})
	for k := range keys {
		awaitReal(t, max(left(), time.Second), fmt.Sprint("key ", k, " is read as it was written"), func() bool {
			v, err := b.Get(ctx, fmt.Sprint(k))
			return err == nil && v == int(versions[k].Load())
		})
	}
	end()
	// The lease works again: one load of a key for both.
	awaitReal(t, max(left(), time.Second), "one process loads for both", func() bool {
		for k := range keys {
			if a.Delete(ctx, fmt.Sprint(k)) != nil {
				return false
			}
		}
		before, leases := loads.Load(), a.Stats().Leases+b.Stats().Leases
		many(keys, func(k int) {
			many(2, func(i int) {
				if _, err := []*coordinator.Cache[string, int]{a, b}[i].Get(ctx, fmt.Sprint(k)); err != nil {
					t.Errorf("Get: %v", err)
				}
			})
		})
		return loads.Load()-before == keys && a.Stats().Leases+b.Stats().Leases-leases >= keys
	})
	t.Logf("%d of %d writes missed the tier and arrived within %v; all was as before within %v; %d reads, the slowest took %v",
		missed, keys, arrived, time.Since(began), reads.Load(), time.Duration(slowest.Load()))
}
