package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

const goRedisModule = "github.com/redis/go-redis/v9"

// goRedisOptions are the client's defaults, for all that is built on it, Terrace
// included.
func goRedisOptions(address string) *redis.Options { return &redis.Options{Addr: address} }

// goRedisGet is a Get on a connection from the pool.
var goRedisGet = remoteContestant{
	name:   "go-redis",
	module: goRedisModule,
	server: redisServer,
	open: func(s remoteSetup) (remoteCache, error) {
		client := redis.NewClient(goRedisOptions(s.address))
		return goRedis{client, client}, nil
	},
}

// goRedisAutoPipeline puts the commands of many goroutines into one pipeline, by the
// options that its documentation prefers on a fast link.
var goRedisAutoPipeline = remoteContestant{
	name:   "go-redis-autopipeline",
	module: goRedisModule,
	server: redisServer,
	open: func(s remoteSetup) (remoteCache, error) {
		client := redis.NewClient(goRedisOptions(s.address))
		pipeliner, err := client.AutoPipeline()
		return goRedis{client, pipeliner}, err
	},
}

// goRedisFullDuplex is AutoPipeline's form for slow links.
var goRedisFullDuplex = remoteContestant{
	name:   "go-redis-fullduplex",
	module: goRedisModule,
	server: redisServer,
	open: func(s remoteSetup) (remoteCache, error) {
		client := redis.NewClient(goRedisOptions(s.address))
		options := redis.DefaultBlockingAutoPipelineOptions()
		options.FullDuplex = true
		pipeliner, err := client.AutoPipelineWithOptions(options)
		return goRedis{client, pipeliner}, err
	},
}

// goRedis asks through the client itself or what stands in front of it.
type goRedis struct {
	client *redis.Client
	asks   redis.Cmdable
}

func (c goRedis) get(ctx context.Context, key string) ([]byte, error) {
	return c.asks.Get(ctx, key).Bytes()
}

func (c goRedis) set(ctx context.Context, key string, value []byte) error {
	return c.asks.Set(ctx, key, value, remoteTTL).Err()
}

func (c goRedis) close() { _ = c.client.Close() }

// goRedisPipeline sends a GET for each key, all at once.
var goRedisPipeline = batchContestant{
	name:   "go-redis-pipeline",
	module: goRedisModule,
	server: redisServer,
	open: func(s remoteSetup) (batcher, error) {
		client := redis.NewClient(goRedisOptions(s.address))
		return goRedisPipelined{goRedis{client, client}}, nil
	},
}

type goRedisPipelined struct{ goRedis }

func (c goRedisPipelined) getMany(ctx context.Context, keys []string) (int, error) {
	pipe := c.client.Pipeline()
	commands := make([]*redis.StringCmd, len(keys))
	for i, key := range keys {
		commands[i] = pipe.Get(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return 0, err
	}
	found := 0
	for _, command := range commands {
		if b, err := command.Bytes(); err == nil && b != nil {
			found++
		}
	}
	return found, nil
}

// goRedisMGet sends one MGET.
var goRedisMGet = batchContestant{
	name:   "go-redis-mget",
	module: goRedisModule,
	server: redisServer,
	open: func(s remoteSetup) (batcher, error) {
		client := redis.NewClient(goRedisOptions(s.address))
		return goRedisMGetter{goRedis{client, client}}, nil
	},
}

type goRedisMGetter struct{ goRedis }

func (c goRedisMGetter) getMany(ctx context.Context, keys []string) (int, error) {
	values, err := c.client.MGet(ctx, keys...).Result()
	found := 0
	for _, v := range values {
		if v != nil {
			found++
		}
	}
	return found, err
}
