package coordinator_test

import (
	"context"
	"fmt"
	"strings"
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

// A master of a tracked Cluster dies. What memory held is dropped, once it is lost and once
// its replica has its place; nothing is read again that nobody asks for; and what others
// write at the new master goes from memory as before.
func TestTrackingOverAClusterFailover(t *testing.T) {
	t.Parallel() // with those who wait for elections too
	nodes := servers.RedisCluster(t, 3)
	replica := servers.RedisClusterReplica(t, nodes[1])
	store, err := redis.Open("redis+cluster://"+nodes[0].Addr()+"?addr="+nodes[2].Addr(),
		redis.Options{Prefix: trackedPrefix, Tracking: redis.TrackingOptions{Ping: 300 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{Cache: newCache(t, coordinator.Options[string, int]{
		Tiers: []tier.Tier[string, int]{
			{Name: "l1", Store: lru.New[string, int](1000)},
			{Name: "l3", Store: tier.Encode[string, int](store, codec.JSON[int]()), Timeout: 2 * time.Second, Breaker: tier.Breaker{Probe: 200 * time.Millisecond}},
		},
		Lifetime: policy.Lifetime{TTL: time.Hour},
		Load:     func(context.Context, string) (int, error) { return 7, nil },
		Track:    true,
	})}
	m.awaitTracking(t, true)
	foreign := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{nodes[0].Addr()}})
	t.Cleanup(func() { _ = foreign.Close() })
	keys := make([]string, 60)
	for i := range keys {
		keys[i] = fmt.Sprint("key ", i)
	}
	// deleted has another program delete each key, whoever is its master.
	deleted := func() {
		t.Helper()
		m.quietTracking(t)
		for _, key := range keys {
			if got := m.peekTier(key); got != "l1" {
				t.Fatalf("%s is in %q, want l1; %+v", key, got, m.Stats().Tracking)
			}
			awaitReal(t, 20*time.Second, "the deletion", func() bool {
				err := foreign.Del(ctx, trackedPrefix+key).Err()
				if err != nil { // it learns of a new master once a minute by itself
					foreign.ReloadState(ctx)
				}
				return err == nil
			})
		}
		for _, key := range keys {
			awaitReal(t, 10*time.Second, key+" goes from memory", func() bool { return m.peekTier(key) == "" })
		}
	}
	for _, key := range keys {
		m.write(t, key, 1)
	}
	deleted()
	for _, key := range keys {
		m.write(t, key, 2)
	}
	m.quietTracking(t)
	before := m.Stats()
	survivors := []*servers.Server{nodes[0], nodes[2], replica}
	readsBefore := readsOf(t, survivors)
	nodes[1].Kill()
	awaitReal(t, 10*time.Second, "the loss", func() bool { return m.Stats().Tracking.Gaps > before.Tracking.Gaps })
	lost := time.Now()
	awaitReal(t, 30*time.Second, "the new master is tracked", func() bool { return m.Stats().Tracking.Connected })
	again := time.Since(lost)
	awaitReal(t, 10*time.Second, "what memory held is dropped", func() bool { return m.Stats().Tracking.Dropped >= before.Tracking.Dropped+2 })
	if got := readsOf(t, survivors) - readsBefore; got != 0 {
		t.Errorf("the failover has %d values read that nobody asked for, want none", got)
	}
	for _, key := range keys {
		awaitReal(t, 20*time.Second, key+" is in memory", func() bool {
			_ = m.Set(ctx, key, 3)
			return m.peekTier(key) == "l1"
		})
	}
	deleted()
	t.Logf("all is told again %v after the loss; %+v", again, m.Stats().Tracking)
}

// readsOf returns how many values the servers were asked for.
func readsOf(t *testing.T, nodes []*servers.Server) (n int) {
	t.Helper()
	for _, node := range nodes {
		info, err := foreignClient(t, node.Addr()).Info(ctx, "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(info) {
			var calls int
			if name, rest, _ := strings.Cut(line, ":calls="); name == "cmdstat_get" || name == "cmdstat_mget" || name == "cmdstat_getrange" {
				if _, err := fmt.Sscan(strings.ReplaceAll(rest, ",", " "), &calls); err != nil {
					t.Fatal(err)
				}
				n += calls
			}
		}
	}
	return n
}
