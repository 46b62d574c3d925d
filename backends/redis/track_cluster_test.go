package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// clusterTracking lets tests notice what is new soon, and a busy machine be slow.
var clusterTracking = redis.Options{Prefix: "test:", Tracking: redis.TrackingOptions{Ping: 300 * time.Millisecond}}

func TestTrackingACluster(t *testing.T) {
	nodes := servers.RedisCluster(t, 3)
	t.Run("conformance", func(t *testing.T) {
		for _, fault := range []string{"black hole", "cut of one node"} {
			t.Run(fault, func(t *testing.T) {
				storetest.TestTracker(t, func(t testing.TB) storetest.TrackSystem { return clusterBehindProxies(t, nodes, fault) })
			})
		}
	})
	for _, node := range nodes { // slots move the sooner
		if err := client(t, &goredis.Options{Addr: node.Addr()}).FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("a limited user", func(t *testing.T) {
		for _, node := range nodes {
			admin := client(t, &goredis.Options{Addr: node.Addr()})
			if err := admin.Do(t.Context(), "acl", "setuser", "tracker", "on", ">secret", "~test:*", "-@all",
				"+hello", "+client", "+ping", "+getrange", "+set", "+cluster|slots", "+command").Err(); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, "redis+cluster://tracker:secret@"+nodes[0].Addr(), clusterTracking)
		r := track(t, s)
		mustSet(t, s, "k", "v")
		if key := <-r.keys; key != "k" {
			t.Errorf("told of %q", key)
		}
	})
	t.Run("all nodes refuse the user", func(t *testing.T) {
		s := open(t, "redis+cluster://tracker:s3cr3t@"+nodes[0].Addr(), clusterTracking)
		r := newRefusals()
		stop, err := s.Track(r)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if why := r.next(t); why == nil || !strings.Contains(why.Error(), "WRONGPASS") || strings.Contains(why.Error(), "s3cr3t") {
			t.Errorf("got %v, want that the password is wrong", why)
		}
	})
	joined := servers.RedisClusterNode(t, nodes)
	t.Run("slots move to a node that is new", func(t *testing.T) {
		s := open(t, "redis+cluster://"+nodes[0].Addr(), clusterTracking)
		r := track(t, s)
		moveSlot(t, append(nodes, joined), "test:moves")
		r.wantLost(t)
		r.wantConnected(t)
		foreign := clusterClient(t, nodes[1])
		r.wantToldOf(t, foreign, "moves")
		r.wantToldOf(t, foreign, "stays")
	})
	t.Run("slots move between nodes that are known", func(t *testing.T) {
		s := open(t, "redis+cluster://"+nodes[0].Addr(), clusterTracking)
		r := track(t, s)
		moveSlot(t, nodes[:3], "test:known")
		foreign := clusterClient(t, nodes[1])
		r.wantToldOf(t, foreign, "known")
		select {
		case why := <-r.why:
			t.Errorf("told %v, want nothing", why)
		default:
		}
	})
	replica := servers.RedisClusterReplica(t, nodes[1])
	t.Run("a replica takes over from a master that lives", func(t *testing.T) {
		s := open(t, "redis+cluster://"+nodes[0].Addr(), clusterTracking)
		r := track(t, s)
		key := keyAt(t, nodes[1])
		if err := client(t, &goredis.Options{Addr: replica.Addr()}).Do(t.Context(), "cluster", "failover").Err(); err != nil {
			t.Fatal(err)
		}
		r.wantLost(t)
		r.wantConnected(t)
		r.wantToldOf(t, clusterClient(t, nodes[0]), key)
	})
	t.Run("a master dies", func(t *testing.T) { // the one that took over; who was master before is its replica
		awaitReplica(t, nodes[1])
		s := open(t, "redis+cluster://"+nodes[0].Addr(), clusterTracking)
		r := track(t, s)
		key := keyAt(t, replica)
		replica.Kill()
		r.wantLost(t)
		r.wantConnected(t)
		r.wantToldOf(t, clusterClient(t, nodes[0]), key)
		for _, node := range []*servers.Server{nodes[0], nodes[2]} {
			key := keyAt(t, node)
			r.wantToldOf(t, clusterClient(t, nodes[0]), key)
		}
	})
}

// clusterBehindProxies is a Cluster to whose nodes clients connect through proxies.
func clusterBehindProxies(t testing.TB, nodes []*servers.Server, fault string) storetest.TrackSystem {
	proxies := make([]*servers.FaultProxy, len(nodes))
	by := make(map[string]string)
	for i, node := range nodes {
		proxies[i] = servers.Proxy(t, node.Addr())
		by[node.Addr()] = proxies[i].Addr()
	}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, by[addr])
	}
	each := func(do func(*servers.FaultProxy)) func() {
		some := proxies
		if fault == "cut of one node" {
			some = proxies[1:2]
		}
		return func() {
			for _, p := range some {
				do(p)
			}
		}
	}
	s := storetest.TrackSystem{
		Open: func(t testing.TB) tier.Bytes {
			b, err := redis.OpenClient(&goredis.UniversalOptions{
				Addrs: []string{nodes[0].Addr(), nodes[1].Addr()}, IsClusterMode: true, Dialer: dial,
			}, clusterTracking)
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
		Cut: each((*servers.FaultProxy).Cut), Restore: each((*servers.FaultProxy).Restore),
	}
	if fault == "black hole" {
		s.Cut = each((*servers.FaultProxy).BlackHole)
	}
	return s
}

// tracked is a tracking that stands.
type tracked struct {
	refusals
	stop func()
}

func track(t *testing.T, s *redis.Store) tracked {
	t.Helper()
	r := tracked{refusals: newRefusals()}
	stop, err := s.Track(r)
	if err != nil {
		t.Fatal(err)
	}
	r.stop = sync.OnceFunc(stop)
	t.Cleanup(r.stop)
	if why := r.next(t); why != nil {
		t.Fatal(why)
	}
	return r
}

func (r tracked) wantLost(t *testing.T) {
	t.Helper()
	if why := r.next(t); why == nil {
		t.Fatal("Connected again without Lost")
	}
}

func (r tracked) wantConnected(t *testing.T) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case why := <-r.why:
			if why == nil {
				// A master that was lost may be lost again before all know that it is none.
				return
			}
		case <-deadline:
			t.Fatal("the masters are not all tracked again")
		}
	}
}

// wantToldOf wants a write of the key told, or a later one: while the nodes do not agree
// who is master the tracking may be lost again.
func (r tracked) wantToldOf(t *testing.T, c *goredis.ClusterClient, want string) {
	t.Helper()
	for range 20 {
		set(t, c, "test:"+want, "by another program")
		soon := time.After(500 * time.Millisecond)
		for over := false; !over; {
			select {
			case key := <-r.keys:
				if key == want {
					return
				}
			case <-soon:
				over = true
			}
		}
	}
	t.Fatalf("a change of %q is not told", want)
}

func clusterClient(t *testing.T, node *servers.Server) *goredis.ClusterClient {
	t.Helper()
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{node.Addr()}})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func set(t *testing.T, c *goredis.ClusterClient, key, value string) {
	t.Helper()
	within(t, 20*time.Second, "it can be written", func() bool {
		err := c.Set(t.Context(), key, value, time.Minute).Err()
		if err != nil && !goredis.HasErrorPrefix(err, "CLUSTERDOWN") {
			t.Fatalf("SET: %v", err)
		}
		return err == nil
	})
}

// keyAt returns a key, without the prefix, that the master has.
func keyAt(t *testing.T, node *servers.Server) string {
	t.Helper()
	c := client(t, &goredis.Options{Addr: node.Addr(), MaxRetries: -1})
	for i := range 1000 {
		key := fmt.Sprint("at ", node.Addr(), " ", i)
		if err := c.Get(t.Context(), "test:"+key).Err(); err == nil || errors.Is(err, goredis.Nil) {
			return key
		}
	}
	t.Fatalf("no key is at %s", node.Addr())
	return ""
}

// awaitReplica waits until the node follows its master.
func awaitReplica(t *testing.T, node *servers.Server) {
	t.Helper()
	c := client(t, &goredis.Options{Addr: node.Addr()})
	within(t, 20*time.Second, "it is a replica", func() bool {
		info, err := c.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
	})
}

func within(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// moveSlot moves the key's slot, which is empty but for it, to the last node, or if that
// has it to the one before.
func moveSlot(t *testing.T, nodes []*servers.Server, key string) {
	t.Helper()
	ids := make([]string, len(nodes))
	clients := make([]*goredis.Client, len(nodes))
	from := 0
	for i, node := range nodes {
		clients[i] = client(t, &goredis.Options{Addr: node.Addr(), MaxRetries: -1})
		var err error
		if ids[i], err = clients[i].Do(t.Context(), "cluster", "myid").Text(); err != nil {
			t.Fatal(err)
		}
		if err := clients[i].Get(t.Context(), key).Err(); err == nil || errors.Is(err, goredis.Nil) {
			from = i
		}
	}
	to := len(nodes) - 1
	if to == from {
		to--
	}
	slot, err := clients[0].ClusterKeySlot(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		clients[to].Do(t.Context(), "cluster", "setslot", slot, "importing", ids[from]).Err(),
		clients[from].Do(t.Context(), "cluster", "setslot", slot, "migrating", ids[to]).Err(),
		clients[to].Do(t.Context(), "cluster", "setslot", slot, "node", ids[to]).Err(),
		clients[from].Do(t.Context(), "cluster", "setslot", slot, "node", ids[to]).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}
