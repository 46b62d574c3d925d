package memcached_test

import (
	"context"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/internal/readtest"
	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// BenchmarkGet is a hit, beside that of the client on the same connections.
func BenchmarkGet(b *testing.B) {
	c := memcache.New(servers.Memcached(b).Addr())
	c.MaxIdleConns = 512
	defer c.Close()
	gathered := memcached.NewWith(c, memcached.Options{MaxConnections: 512})
	defer gathered.Close()
	alone := memcached.NewWith(c, memcached.Options{MaxConnections: 512, Gather: 1})
	defer alone.Close()
	readtest.Benchmark(b, gathered,
		readtest.Reader{Name: "gathered", Get: gathered.Get},
		readtest.Reader{Name: "alone", Get: alone.Get},
		readtest.Reader{Name: "gomemcache", Get: func(_ context.Context, key string) ([]byte, error) {
			item, err := c.Get(key)
			if err != nil {
				return nil, err
			}
			return item.Value, nil
		}},
	)
}
