package redis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// quickTracking lets tests notice a silent connection soon.
var quickTracking = redis.Options{Prefix: "test:", Tracking: redis.TrackingOptions{Ping: 100 * time.Millisecond}}

func TestTrackingConformance(t *testing.T) {
	server := servers.Redis(t)
	system := func(t testing.TB, hole bool) storetest.TrackSystem {
		proxy := servers.Proxy(t, server.Addr())
		s := storetest.TrackSystem{
			Open: func(t testing.TB) tier.Bytes {
				b, err := redis.Open("redis://"+proxy.Addr(), quickTracking)
				if err != nil {
					t.Fatal(err)
				}
				return b
			},
			Cut: proxy.Cut, Restore: proxy.Restore,
		}
		if hole {
			s.Cut = proxy.BlackHole
		}
		return s
	}
	t.Run("cut", func(t *testing.T) {
		storetest.TestTracker(t, func(t testing.TB) storetest.TrackSystem { return system(t, false) })
	})
	t.Run("black hole", func(t *testing.T) {
		storetest.TestTracker(t, func(t testing.TB) storetest.TrackSystem { return system(t, true) })
	})
	t.Run("client of one's own, in RESP2, without a prefix", func(t *testing.T) {
		own := servers.Redis(t)
		c := client(t, &goredis.Options{Addr: own.Addr(), Protocol: 2})
		storetest.TestTracker(t, func(t testing.TB) storetest.TrackSystem {
			return storetest.TrackSystem{Open: func(testing.TB) tier.Bytes { return redis.New(c) }}
		})
	})
}

// refusals notes why a tracking does not stand, with nil that it does, and what it tells.
type refusals struct {
	why  chan error
	keys chan string
}

func newRefusals() refusals { return refusals{make(chan error, 1000), make(chan string, 1000)} }

func (r refusals) Connected() { r.why <- nil }
func (r refusals) Changed(keys []string) {
	for _, key := range keys {
		r.keys <- key
	}
}
func (r refusals) ChangedAll()    {}
func (r refusals) Lost(why error) { r.why <- why }
func (r refusals) next(t *testing.T) error {
	t.Helper()
	select {
	case why := <-r.why:
		return why
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is told")
		return nil
	}
}

// A server that refuses to track is told to the handler, by its words, and tried again.
func TestTrackingRefused(t *testing.T) {
	for name, c := range map[string]struct{ rename, want string }{
		"no RESP3":           {"hello", "RESP3"},
		"no CLIENT TRACKING": {"client", "refuses CLIENT TRACKING"},
	} {
		t.Run(name, func(t *testing.T) {
			server := servers.Redis(t, "--rename-command", c.rename, "")
			store, err := redis.Open("redis://"+server.Addr(), quickTracking)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			r := newRefusals()
			if _, err := store.Track(r); err != nil {
				t.Fatal(err)
			}
			if why := r.next(t); why == nil || !strings.Contains(why.Error(), c.want) {
				t.Errorf("got %v, want %q", why, c.want)
			}
		})
	}
}

// Where nobody can tell of all changes in time tracking is refused at once.
func TestTrackingThatCannotBe(t *testing.T) {
	ring := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	replicas := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ReadOnly: true})
	for _, c := range []goredis.UniversalClient{ring, replicas} {
		t.Cleanup(func() { _ = c.Close() })
		store := redis.New(c)
		if _, err := store.Track(refusals{}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Track: %v", err)
		}
		if _, ok := tier.AsBytesTracker(store); ok {
			t.Errorf("a store over a %T says that it can track", c)
		}
	}
}

// A user of the ACL who may do no more than the documentation says.
func TestTrackingByALimitedUser(t *testing.T) {
	server := servers.Redis(t)
	admin := client(t, &goredis.Options{Addr: server.Addr()})
	if err := admin.Do(t.Context(), "acl", "setuser", "cache", "on", ">secret", "~test:*", "-@all",
		"+hello", "+client", "+ping", "+get", "+mget", "+set", "+del", "+eval", "+evalsha", "+getrange").Err(); err != nil {
		t.Fatal(err)
	}
	storetest.TestTracker(t, func(t testing.TB) storetest.TrackSystem {
		return storetest.TrackSystem{Open: func(t testing.TB) tier.Bytes {
			b, err := redis.Open("redis://cache:secret@"+server.Addr(), redis.Options{Prefix: "test:"})
			if err != nil {
				t.Fatal(err)
			}
			return withoutClear{b}
		}}
	})
}

// withoutClear is a store that cannot be cleared, and is asked for few keys.
type withoutClear struct{ *redis.Store }

func (withoutClear) Can(c tier.Capability) bool { return c == tier.CanTrack || c == tier.CanSwap }

func TestTrackingOverAFailover(t *testing.T) {
	master := servers.Redis(t)
	servers.RedisReplica(t, master)
	sentinel := servers.RedisSentinel(t, master, "main", 1)
	s := open(t, "redis+sentinel://"+sentinel.Addr()+"?master_name=main", quickTracking)
	r := newRefusals()
	stop, err := s.Track(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if why := r.next(t); why != nil {
		t.Fatal(why)
	}
	master.Kill()
	if why := r.next(t); why == nil {
		t.Fatal("Connected again without Lost")
	}
	awaitEvent := time.After(30 * time.Second)
	select {
	case why := <-r.why:
		if why != nil {
			t.Fatalf("lost twice: %v", why)
		}
	case <-awaitEvent:
		t.Fatal("the new master is not tracked")
	}
	mustSet(t, s, "k", "v")
	select {
	case key := <-r.keys:
		if key != "k" {
			t.Errorf("told of %q", key)
		}
	case <-awaitEvent:
		t.Fatal("a change at the new master is not told")
	}
}
