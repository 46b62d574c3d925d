package main

import (
	"context"

	rediscache "github.com/go-redis/cache/v9"
	"github.com/redis/go-redis/v9"
)

const goRedisCacheModule = "github.com/go-redis/cache/v9"

// goRedisCache is Once with the local TinyLFU and no Redis behind it, which a hit does
// not ask. Values are marshalled as the library does by itself (MessagePack), since a
// reader gets a value of its own.
var goRedisCache = contestant[string]{
	name:   "go-redis-cache",
	module: goRedisCacheModule,
	loads:  true,
	open: func(s setup[string]) (cache[string], error) {
		c := rediscache.New(&rediscache.Options{LocalCache: rediscache.NewTinyLFU(s.capacity, ttl)})
		return goRedisCacheCache{c, s.load}, nil
	},
}

type goRedisCacheCache struct {
	cache *rediscache.Cache
	load  func(string) *payload
}

func (c goRedisCacheCache) get(key string) *payload {
	v := new(payload)
	err := c.cache.Once(&rediscache.Item{
		Ctx:   request,
		Key:   key,
		Value: v,
		TTL:   ttl,
		Do:    func(*rediscache.Item) (any, error) { return c.load(key), nil },
	})
	if err != nil {
		return nil
	}
	return v
}

func (c goRedisCacheCache) set(key string, v *payload) {
	// The only error is that of Redis.
	_ = c.cache.Set(&rediscache.Item{Ctx: request, Key: key, Value: v, TTL: ttl})
}

func (c goRedisCacheCache) close() {}

// goRedisCacheRemote is Once with Redis alone. Bytes are not marshalled.
var goRedisCacheRemote = remoteContestant{
	name:   "go-redis-cache",
	module: goRedisCacheModule,
	server: redisServer,
	open: func(s remoteSetup) (remoteCache, error) {
		client := redis.NewClient(goRedisOptions(s.address))
		return goRedisOnce{client, rediscache.New(&rediscache.Options{Redis: client})}, nil
	},
}

type goRedisOnce struct {
	client *redis.Client
	cache  *rediscache.Cache
}

func (c goRedisOnce) get(ctx context.Context, key string) ([]byte, error) {
	var v []byte
	err := c.cache.Once(&rediscache.Item{
		Ctx:   ctx,
		Key:   key,
		Value: &v,
		TTL:   remoteTTL,
		Do:    func(*rediscache.Item) (any, error) { return nil, errMissed },
	})
	return v, err
}

func (c goRedisOnce) set(ctx context.Context, key string, value []byte) error {
	return c.cache.Set(&rediscache.Item{Ctx: ctx, Key: key, Value: value, TTL: remoteTTL})
}

func (c goRedisOnce) close() { _ = c.client.Close() }
