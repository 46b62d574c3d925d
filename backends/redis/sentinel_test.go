package redis_test

import (
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

func TestSentinelFailover(t *testing.T) {
	t.Parallel() // it waits for an election
	master := servers.Redis(t)
	servers.RedisReplica(t, master)
	sentinel := servers.RedisSentinel(t, master, "main", 1)
	s := open(t, "redis+sentinel://"+sentinel.Addr()+"/2?master_name=main", redis.Options{Prefix: "p:"})
	mustSet(t, s, "key", "value")
	wantValue(t, s, "key", "value")

	master.Kill()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := s.Set(t.Context(), "after", []byte("value"), time.Minute)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica did not take over: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	wantValue(t, s, "after", "value")
	if stored, err := s.SetIf(t.Context(), "after", []byte("swapped"), time.Minute, []byte("value")); !stored || err != nil {
		t.Errorf("SetIf = %v, %v", stored, err)
	}
}
