package redis_test

import (
	"context"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/internal/readtest"
	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// BenchmarkGet is a hit, beside that of the client on the same connections.
func BenchmarkGet(b *testing.B) {
	c := goredis.NewClient(&goredis.Options{Addr: servers.Redis(b).Addr()})
	defer c.Close()
	gathered := redis.New(c)
	defer gathered.Close()
	alone := redis.NewWith(c, redis.Options{Gather: 1})
	defer alone.Close()
	readtest.Benchmark(b, gathered,
		readtest.Reader{Name: "gathered", Get: gathered.Get},
		readtest.Reader{Name: "alone", Get: alone.Get},
		readtest.Reader{Name: "go-redis", Get: func(ctx context.Context, key string) ([]byte, error) { return c.Get(ctx, key).Bytes() }},
	)
}
