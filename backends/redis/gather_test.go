package redis_test

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

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/internal/readtest"
	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// trips counts the round trips of a client, and the keys that they ask for.
type trips struct {
	goredis.Hook
	all, keys atomic.Int64
}

func (*trips) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (h *trips) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		h.all.Add(1)
		h.keys.Add(1)
		return next(ctx, cmd)
	}
}

func (h *trips) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		h.all.Add(1)
		h.keys.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// keepAll fills a store with values of all kinds, under keys of all kinds.
func keepAll(t *testing.T, s *redis.Store, raw goredis.UniversalClient, prefix string) []readtest.Kept {
	t.Helper()
	var all []readtest.Kept
	for _, key := range []string{"", " ", "a b", "\x00\r\n", "\xff\xfe", "{tag}1", "{}", strings.Repeat("k", 1024)} {
		all = append(all, readtest.Kept{Key: "kind " + key, Value: []byte("of " + key)})
	}
	for i := range 60 {
		all = append(all, readtest.Kept{Key: fmt.Sprint("some ", i), Value: bytes.Repeat([]byte{byte(i)}, i*7)})
		all = append(all, readtest.Kept{Key: fmt.Sprint("none ", i)})
	}
	all = append(all, readtest.Kept{Key: "", Value: []byte("empty key")}, readtest.Kept{Key: "big", Value: bytes.Repeat([]byte("big"), 1<<16)})
	for _, k := range all {
		if k.Value == nil {
			continue
		}
		if err := s.Set(t.Context(), k.Key, k.Value, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		key := fmt.Sprint("list ", i)
		if err := raw.RPush(t.Context(), prefix+key, "x").Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, readtest.Kept{Key: key, Bad: true, OrNothing: true})
	}
	return all
}

func TestGetsThatMeetGiveEachItsOwn(t *testing.T) {
	c := client(t, &goredis.Options{Addr: servers.Redis(t).Addr(), ReadTimeout: 20 * time.Second})
	h := new(trips)
	s := redis.NewWith(c, redis.Options{Prefix: "p:"})
	all := keepAll(t, s, c, "p:")
	c.AddHook(h)
	readtest.Concurrently(t, s, all, 3)
	if got, reads := h.all.Load(), int64(readtest.Readers*len(all)*3); got > reads/2 {
		t.Errorf("%d reads made %d round trips, want far fewer", reads, got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A user who may not use MGET reads all the same, and the server is not asked again and
// again.
func TestGetsThatMeetWhereMGETIsRefused(t *testing.T) {
	server := servers.Redis(t)
	admin := client(t, &goredis.Options{Addr: server.Addr()})
	if err := admin.Do(t.Context(), "acl", "setuser", "reader", "on", ">pass", "~*", "+@all", "-mget").Err(); err != nil {
		t.Fatal(err)
	}
	c := client(t, &goredis.Options{Addr: server.Addr(), Username: "reader", Password: "pass", ReadTimeout: 20 * time.Second})
	s := redis.NewWith(c, redis.Options{Prefix: "p:"})
	all := keepAll(t, s, c, "p:")
	readtest.Concurrently(t, s, all, 3)
	log, err := admin.ACLLog(t.Context(), 100).Result()
	if err != nil {
		t.Fatal(err)
	}
	refused := int64(0)
	for _, entry := range log {
		refused += entry.Count
	}
	if refused == 0 || refused > 16 {
		t.Errorf("the server has refused %d commands, want a few", refused)
	}
}

func TestC61GetsThatMeetOnACluster(t *testing.T) {
	nodes := servers.RedisCluster(t, 3)
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{nodes[0].Addr()}, ReadTimeout: 20 * time.Second, MaxRetries: 1})
	defer c.Close()
	s := redis.NewWith(c, redis.Options{Prefix: "p:"})
	defer s.Close()
	all := keepAll(t, s, c, "p:")
	readtest.Concurrently(t, s, all, 2)

	// A slot that is moving: some of a round trip's keys are answered elsewhere.
	moving := redis.NewWith(c, redis.Options{Prefix: "{moving}"})
	defer moving.Close()
	var slot []readtest.Kept
	for i := range 30 {
		k := readtest.Kept{Key: fmt.Sprint("key", i), Value: fmt.Append(nil, i)}
		mustSet(t, moving, k.Key, string(k.Value))
		slot = append(slot, k)
	}
	move(t, nodes, "{moving}key7")
	readtest.Concurrently(t, moving, slot, 2)

	// A node that is gone fails the keys of its own, and no others.
	own := make([]bool, len(all))
	gone := client(t, &goredis.Options{Addr: nodes[2].Addr()})
	for i, k := range all {
		owner, err := c.MasterForKey(t.Context(), "p:"+k.Key)
		if err != nil {
			t.Fatal(err)
		}
		own[i] = owner.Options().Addr == gone.Options().Addr
	}
	nodes[2].Kill()
	var wg sync.WaitGroup
	for range readtest.Readers / 8 {
		for i, k := range all {
			wg.Go(func() {
				value, err := s.Get(t.Context(), k.Key)
				if checked := k.Check(value, err); !own[i] && checked != nil {
					t.Errorf("on a node that is up: %v", checked)
				} else if own[i] && err == nil {
					t.Errorf("%.20q is on the node that is gone, and got no error", k.Key)
				}
			})
		}
	}
	wg.Wait()
}

func TestC59AConnectionIsCutUnderARoundTripOfMany(t *testing.T) {
	p := servers.Proxy(t, servers.Redis(t).Addr())
	c := client(t, &goredis.Options{Addr: p.Addr(), MaxRetries: -1}) // so that ours are seen
	s := redis.NewWith(c, redis.Options{Prefix: prefix()})
	all := keepAll(t, s, c, strings.TrimSuffix(strings.TrimPrefix(s.String(), `redis(prefix "`), `")`))
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
	for _, heeded := range []bool{false, true} {
		p := servers.Proxy(t, servers.Redis(t).Addr())
		c := client(t, &goredis.Options{Addr: p.Addr(), ContextTimeoutEnabled: heeded, ReadTimeout: 2 * time.Second, PoolSize: 50, MaxRetries: -1})
		s := redis.NewWith(c, redis.Options{Prefix: prefix()})
		mustSet(t, s, "key", "value")
		p.Delay(300 * time.Millisecond)
		var wg sync.WaitGroup
		for i := range readtest.Readers {
			wg.Go(func() {
				if i%2 == 0 { // patient ones share their round trips with those who leave
					if got, err := s.Get(t.Context(), "key"); string(got) != "value" || err != nil {
						t.Errorf("who waits: got %q, %v", got, err)
					}
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), budget)
				defer cancel()
				begun := time.Now()
				if _, err := s.Get(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got error %v, want the context's", err)
				}
				if took := time.Since(begun); took > budget+slack {
					t.Errorf("left after %v, want %v", took, budget)
				}
			})
		}
		wg.Wait()
		p.BlackHole()
		for range readtest.Readers {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), budget)
				defer cancel()
				if _, err := s.Get(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("black hole: got error %v, want the context's", err)
				}
			})
		}
		wg.Wait()
		p.Restore()
		p.Reset()
		if got, err := s.Get(t.Context(), "key"); string(got) != "value" || err != nil {
			t.Errorf("after the fault: got %q, %v", got, err)
		}
		s.Close()
	}
}
