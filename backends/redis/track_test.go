package redis_test

import (
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
