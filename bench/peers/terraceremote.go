package main

import (
	"context"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// terraceRedis is the whole coordinator over Redis alone, through a client of its own, whose
// defaults are those of go-redis's own row but for timeouts.
var terraceRedis = remoteContestant{
	name:   "terrace-redis",
	module: terraceModule,
	server: redisServer,
	open: func(s remoteSetup) (remoteCache, error) {
		store, err := redis.Open("redis://"+s.address, redis.Options{})
		if err != nil {
			return nil, err
		}
		return openTerraceRemote("redis", store)
	},
}

// terraceMemcached is the whole coordinator over memcached alone, through a client of its
// own.
var terraceMemcached = remoteContestant{
	name:   "terrace-memcached",
	module: terraceModule,
	server: memcachedServer,
	open: func(s remoteSetup) (remoteCache, error) {
		store, err := memcached.Open(memcached.Options{Servers: []string{s.address}})
		if err != nil {
			return nil, err
		}
		return openTerraceRemote("memcached", store)
	},
}

func openTerraceRemote(name string, store tier.Bytes) (remoteCache, error) {
	c, err := coordinator.New(coordinator.Options[string, []byte]{
		Tiers:    []tier.Tier[string, []byte]{{Name: name, Store: tier.Encode[string](store, codec.Raw())}},
		Lifetime: policy.Lifetime{TTL: remoteTTL},
		Refresh:  policy.XFetch{},
	})
	return terraceRemote{c}, err
}

type terraceRemote struct {
	cache *coordinator.Cache[string, []byte]
}

func (c terraceRemote) get(ctx context.Context, key string) ([]byte, error) {
	return c.cache.Get(ctx, key)
}

func (c terraceRemote) set(ctx context.Context, key string, value []byte) error {
	return c.cache.Set(ctx, key, value)
}

func (c terraceRemote) close() {
	_ = c.cache.Close(request)
}
