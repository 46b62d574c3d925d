package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

func TestC61Cluster(t *testing.T) {
	nodes := servers.RedisCluster(t, 3)
	url := "redis+cluster://" + nodes[0].Addr() + "?addr=" + nodes[1].Addr()

	t.Run("conformance", func(t *testing.T) {
		storetest.TestBytes(t, func(t testing.TB) tier.Bytes { return open(t, url, redis.Options{Prefix: prefix()}) })
	})

	t.Run("the rights that a user needs", func(t *testing.T) {
		for _, node := range nodes {
			admin := client(t, &goredis.Options{Addr: node.Addr()})
			set := append([]any{"acl", "setuser", "cache", "on", ">pw", "~p:*", "+cluster|slots", "+command"}, rights...)
			if err := admin.Do(t.Context(), set...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, "redis+cluster://cache:pw@"+nodes[0].Addr(), redis.Options{Prefix: "p:"})
		mustSet(t, s, "key", "value")
		wantValue(t, s, "key", "value")
		_, getErr := s.GetMany(t.Context(), []string{"key", "a", "b", "c"})
		_, swapErr := s.SetIf(t.Context(), "key", []byte("new"), time.Minute, []byte("value"))
		if err := errors.Join(getErr, swapErr, s.Clear(t.Context())); err != nil {
			t.Error(err)
		}
	})

	t.Run("batch over all slots", func(t *testing.T) {
		s := open(t, url, redis.Options{Prefix: "batch:"})
		const n = 2500
		keys, values := make([]string, n), make([][]byte, n)
		for i := range keys {
			keys[i], values[i] = fmt.Sprint("key ", i), fmt.Append(nil, i)
		}
		if err := s.SetMany(t.Context(), keys, values, slices.Repeat([]time.Duration{time.Minute}, n)); err != nil {
			t.Fatal(err)
		}
		spread := 0
		for _, node := range nodes {
			size, err := client(t, &goredis.Options{Addr: node.Addr()}).DBSize(t.Context()).Result()
			if err != nil {
				t.Fatal(err)
			}
			if size > 0 {
				spread++
			}
		}
		if spread != 3 {
			t.Errorf("the keys are on %d nodes, want 3", spread)
		}
		for _, size := range []int{100, n} {
			got, err := s.GetMany(t.Context(), keys[:size])
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if string(got[i]) != string(values[i]) {
					t.Fatalf("value %d is %q", i, got[i])
				}
			}
		}
		if stored, err := s.SetIf(t.Context(), "key 1", []byte("swapped"), time.Minute, []byte("1")); !stored || err != nil {
			t.Errorf("SetIf = %v, %v", stored, err)
		}
		if err := s.DeleteMany(t.Context(), keys[:100]); err != nil {
			t.Error(err)
		}
		foreign := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{nodes[2].Addr()}})
		defer foreign.Close()
		for i := range 100 {
			if err := foreign.Set(t.Context(), fmt.Sprint("foreign:", i), "value", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Clear(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := s.GetMany(t.Context(), keys)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(got, func(b []byte) bool { return b != nil }) {
			t.Error("after Clear there are values left")
		}
		for i := range 100 {
			if err := foreign.Get(t.Context(), fmt.Sprint("foreign:", i)).Err(); err != nil {
				t.Errorf("Clear took a key of others: %v", err)
			}
		}
	})

	t.Run("a slot that moves", func(t *testing.T) {
		s := open(t, url, redis.Options{Prefix: "{moving}"})
		mustSet(t, s, "key", "value")
		mustSet(t, s, "stays", "value")
		move(t, nodes, "{moving}key")
		// ASK for what has moved, the old node for what has not, MOVED at the end.
		wantValue(t, s, "key", "value")
		wantValue(t, s, "stays", "value")
		mustSet(t, s, "new", "value")
		if stored, err := s.SetIf(t.Context(), "key", []byte("swapped"), time.Minute, []byte("value")); !stored || err != nil {
			t.Errorf("SetIf = %v, %v", stored, err)
		}
		got, err := s.GetMany(t.Context(), []string{"key", "stays", "new", "none"})
		if err != nil || string(got[0]) != "swapped" || string(got[1]) != "value" || string(got[2]) != "value" || got[3] != nil {
			t.Errorf("GetMany = %q, %v", got, err)
		}
	})

	t.Run("a node that is down", func(t *testing.T) {
		s := open(t, url, redis.Options{Prefix: "down:"})
		const n = 300
		keys, values := make([]string, n), make([][]byte, n)
		for i := range keys {
			keys[i], values[i] = fmt.Sprint(i), []byte("value")
		}
		if err := s.SetMany(t.Context(), keys, values, slices.Repeat([]time.Duration{time.Minute}, n)); err != nil {
			t.Fatal(err)
		}
		nodes[2].Kill()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		got, err := s.GetMany(ctx, keys)
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v after %v, want one of the connection", err, time.Since(start))
		}
		found := 0
		for _, value := range got {
			if value != nil {
				found++
			}
		}
		if found < n/3 || found == n {
			t.Errorf("%d of %d values, want those of the two nodes that are up", found, n)
		}
	})
}

// move begins to move the key's slot to another node, and takes that key along.
func move(t *testing.T, nodes []*servers.Server, key string) {
	t.Helper()
	c := make([]*goredis.Client, len(nodes))
	id := make([]string, len(nodes))
	for i, node := range nodes {
		c[i] = client(t, &goredis.Options{Addr: node.Addr()})
		var err error
		if id[i], err = c[i].Do(t.Context(), "cluster", "myid").Text(); err != nil {
			t.Fatal(err)
		}
	}
	slot, err := c[0].ClusterKeySlot(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	from := slices.IndexFunc(c, func(c *goredis.Client) bool { return c.Get(t.Context(), key).Err() == nil })
	to := (from + 1) % len(c)
	opt := c[to].Options()
	host, port, _ := net.SplitHostPort(opt.Addr)
	for _, err := range []error{
		c[to].Do(t.Context(), "cluster", "setslot", slot, "importing", id[from]).Err(),
		c[from].Do(t.Context(), "cluster", "setslot", slot, "migrating", id[to]).Err(),
		c[from].Migrate(t.Context(), host, port, key, 0, 5*time.Second).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}
