package main

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// terraceRedis is the whole coordinator over Redis alone, through a client like that
// of go-redis's own row.
var terraceRedis = remoteContestant{
	name:   "terrace-redis",
	module: terraceModule,
	server: redisServer,
	open: func(s remoteSetup) (remoteCache, error) {
		client := goredis.NewClient(goRedisOptions(s.address))
		return openTerraceRemote("redis", redis.New(client), func() { _ = client.Close() })
	},
}

// terraceMemcached is the whole coordinator over memcached alone, through a client
// like that of gomemcache's own row.
var terraceMemcached = remoteContestant{
	name:   "terrace-memcached",
	module: terraceModule,
	server: memcachedServer,
	open: func(s remoteSetup) (remoteCache, error) {
		client := gomemcacheClient(s)
		store := memcached.NewWith(client, memcached.Options{MaxConnections: s.goroutines})
		return openTerraceRemote("memcached", store, func() { _ = client.Close() })
	},
}

func openTerraceRemote(name string, store tier.Bytes, release func()) (remoteCache, error) {
	c, err := coordinator.New(coordinator.Options[string, []byte]{
		Tiers:    []tier.Tier[string, []byte]{{Name: name, Store: tier.Encode[string](store, codec.Raw())}},
		Lifetime: policy.Lifetime{TTL: remoteTTL},
		Refresh:  policy.XFetch{},
	})
	return terraceRemote{c, release}, err
}

type terraceRemote struct {
	cache   *coordinator.Cache[string, []byte]
	release func() // closes the client
}

func (c terraceRemote) get(ctx context.Context, key string) ([]byte, error) {
	return c.cache.Get(ctx, key)
}

func (c terraceRemote) set(ctx context.Context, key string, value []byte) error {
	return c.cache.Set(ctx, key, value)
}

func (c terraceRemote) close() {
	_ = c.cache.Close(request)
	c.release()
}
