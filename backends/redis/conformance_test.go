package redis_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	// Where a node refuses connections go-redis tries it once a second, and only then looks
	// whether its client is closed.
	leak := goleak.Find()
	for deadline := time.Now().Add(3 * time.Second); leak != nil && time.Now().Before(deadline); {
		leak = goleak.Find()
	}
	if code == 0 && leak != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left:", leak)
		code = 1
	}
	os.Exit(code)
}

// prefixes are new in each store, and hold what means something to a glob pattern.
var prefixes atomic.Int64

func prefix() string { return fmt.Sprintf(`[a-z]*?\%d:`, prefixes.Add(1)) }

func open(t testing.TB, url string, o redis.Options) *redis.Store {
	t.Helper()
	s, err := redis.Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func client(t testing.TB, o *goredis.Options) *goredis.Client {
	t.Helper()
	c := goredis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestConformance(t *testing.T) {
	addr := servers.Redis(t).Addr()
	const limit = 1 << 20
	t.Run("own client", func(t *testing.T) {
		storetest.TestBytesWith(t, func(t testing.TB) tier.Bytes {
			return open(t, "redis://"+addr, redis.Options{Prefix: prefix(), MaxValueSize: limit})
		}, storetest.BytesOptions{TooLarge: limit + 1})
	})
	t.Run("another's client", func(t *testing.T) {
		c := client(t, &goredis.Options{Addr: addr})
		storetest.TestBytes(t, func(testing.TB) tier.Bytes {
			return redis.NewWith(c, redis.Options{Prefix: prefix()})
		})
	})
	t.Run("ring", func(t *testing.T) {
		c := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"one": addr, "other": servers.Redis(t).Addr()}})
		defer c.Close()
		storetest.TestBytes(t, func(testing.TB) tier.Bytes {
			return redis.NewWith(c, redis.Options{Prefix: prefix()})
		})
	})
}
