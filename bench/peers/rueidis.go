package main

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

const rueidisModule = "github.com/redis/rueidis"

// rueidisDo sends what all goroutines ask down the same few connections.
var rueidisDo = remoteContestant{
	name:   "rueidis",
	module: rueidisModule,
	server: redisServer,
	open:   func(s remoteSetup) (remoteCache, error) { return newRueidis(s.address, 0) },
}

// rueidisDelay waits a moment after each write to a connection, as long as its
// documentation finds harmless, for more to come.
var rueidisDelay = remoteContestant{
	name:   "rueidis-flush-delay",
	module: rueidisModule,
	server: redisServer,
	open: func(s remoteSetup) (remoteCache, error) {
		return newRueidis(s.address, 20*time.Microsecond)
	},
}

// rueidisDoMulti sends a GET for each key, all at once.
var rueidisDoMulti = batchContestant{
	name:   "rueidis-domulti",
	module: rueidisModule,
	server: redisServer,
	open:   func(s remoteSetup) (batcher, error) { return newRueidis(s.address, 0) },
}

func newRueidis(address string, flushDelay time.Duration) (rueidisCache, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{address},
		ForceSingleClient: true, // no questions whether it is a Cluster
		MaxFlushDelay:     flushDelay,
	})
	return rueidisCache{client}, err
}

type rueidisCache struct {
	client rueidis.Client
}

func (c rueidisCache) get(ctx context.Context, key string) ([]byte, error) {
	return c.client.Do(ctx, c.client.B().Get().Key(key).Build()).AsBytes()
}

func (c rueidisCache) getMany(ctx context.Context, keys []string) (int, error) {
	commands := make(rueidis.Commands, len(keys))
	for i, key := range keys {
		commands[i] = c.client.B().Get().Key(key).Build()
	}
	found := 0
	for _, answer := range c.client.DoMulti(ctx, commands...) {
		b, err := answer.AsBytes()
		switch {
		case err == nil && b != nil:
			found++
		case err != nil && !rueidis.IsRedisNil(err):
			return found, err
		}
	}
	return found, nil
}

func (c rueidisCache) set(ctx context.Context, key string, value []byte) error {
	return c.client.Do(ctx, c.client.B().Set().Key(key).Value(rueidis.BinaryString(value)).Ex(remoteTTL).Build()).Error()
}

func (c rueidisCache) close() { c.client.Close() }

// rueidisDoCache is a hit in rueidis's own cache, which Redis tells of writes.
// Writing is asking Redis, so it is not measured beside caches that write in memory.
var rueidisDoCache = contestant[string]{
	name:     "rueidis-docache",
	module:   rueidisModule,
	readOnly: true,
	server:   redisServer,
	sizeless: true,
	open: func(s setup[string]) (cache[string], error) {
		c, err := newRueidis(s.address, 0)
		return rueidisClientSide{c}, err
	},
}

type rueidisClientSide struct {
	rueidisCache
}

func (c rueidisClientSide) get(key string) *payload {
	b, err := c.client.DoCache(request, c.client.B().Get().Key(key).Cache(), remoteTTL).AsBytes()
	if err != nil || len(b) != len(payload{}) {
		return nil
	}
	return (*payload)(b)
}

// fill writes the values to Redis and reads them once, so that they are in the
// client's cache.
func (c rueidisClientSide) fill(keys []string, value func(string) *payload) error {
	for some := range slices.Chunk(keys, fillChunk) {
		var sets rueidis.Commands
		var gets []rueidis.CacheableTTL
		for _, key := range some {
			sets = append(sets, c.client.B().Set().Key(key).Value(rueidis.BinaryString(value(key)[:])).Ex(remoteTTL).Build())
			gets = append(gets, rueidis.CT(c.client.B().Get().Key(key).Cache(), remoteTTL))
		}
		for _, answer := range c.client.DoMulti(request, sets...) {
			if err := answer.Error(); err != nil {
				return err
			}
		}
		for _, answer := range c.client.DoMultiCache(request, gets...) {
			if err := answer.Error(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c rueidisClientSide) set(key string, v *payload) {
	// That it failed shows when the key is not there.
	_ = c.rueidisCache.set(request, key, v[:])
}
