package main

import (
	"context"

	"github.com/bradfitz/gomemcache/memcache"
)

const gomemcacheModule = "github.com/bradfitz/gomemcache"

// gomemcacheClient keeps a connection for each goroutine, as its documentation says.
func gomemcacheClient(s remoteSetup) *memcache.Client {
	client := memcache.New(s.address)
	client.MaxIdleConns = s.goroutines
	return client
}

// gomemcacheGet is a Get on a connection from the pool.
var gomemcacheGet = remoteContestant{
	name:   "gomemcache",
	module: gomemcacheModule,
	server: memcachedServer,
	open:   func(s remoteSetup) (remoteCache, error) { return gomemcache{gomemcacheClient(s)}, nil },
}

// gomemcacheGetMulti asks for all keys in one line.
var gomemcacheGetMulti = batchContestant{
	name:   "gomemcache-getmulti",
	module: gomemcacheModule,
	server: memcachedServer,
	open:   func(s remoteSetup) (batcher, error) { return gomemcache{gomemcacheClient(s)}, nil },
}

type gomemcache struct {
	client *memcache.Client
}

func (c gomemcache) get(_ context.Context, key string) ([]byte, error) {
	item, err := c.client.Get(key)
	if err != nil {
		return nil, err
	}
	return item.Value, nil
}

func (c gomemcache) getMany(_ context.Context, keys []string) (int, error) {
	items, err := c.client.GetMulti(keys)
	return len(items), err
}

func (c gomemcache) set(_ context.Context, key string, value []byte) error {
	return c.client.Set(&memcache.Item{Key: key, Value: value, Expiration: int32(remoteTTL.Seconds())})
}

func (c gomemcache) close() { _ = c.client.Close() }
