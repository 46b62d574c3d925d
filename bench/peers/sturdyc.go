package main

import (
	"context"
	"time"

	"github.com/viccon/sturdyc"
)

const sturdycModule = "github.com/viccon/sturdyc"

// sturdycPlain has no early refresh.
var sturdycPlain = contestant[string]{
	name:   "sturdyc",
	module: sturdycModule,
	loads:  true,
	shards: true,
	open: func(s setup[string]) (cache[string], error) {
		return newSturdyc(s), nil
	},
}

// sturdycEarly refreshes ahead of the end, at random, as Terrace does under XFetch.
var sturdycEarly = contestant[string]{
	name:   "sturdyc-early",
	module: sturdycModule,
	loads:  true,
	shards: true,
	open: func(s setup[string]) (cache[string], error) {
		return newSturdyc(s, sturdyc.WithEarlyRefreshes(refreshAfter, refreshAfter+10*time.Minute, ttl, time.Second)), nil
	},
}

// newSturdyc has the shards and the share that its README shows. Its job that looks
// for expired entries cannot be stopped, so it is off, which favours it a little.
func newSturdyc(s setup[string], options ...sturdyc.Option) *sturdycCache {
	const shards, evictPercent = 10, 10
	options = append(options, sturdyc.WithNoContinuousEvictions())
	return &sturdycCache{sturdyc.New[*payload](s.capacity, shards, ttl, evictPercent, options...), s.load}
}

type sturdycCache struct {
	client *sturdyc.Client[*payload]
	load   func(string) *payload
}

// get makes the closure that knows the key at each call: there is no other way to
// tell the fetch function.
func (c *sturdycCache) get(key string) *payload {
	v, _ := c.client.GetOrFetch(request, key, func(context.Context) (*payload, error) {
		return c.load(key), nil
	})
	return v
}

func (c *sturdycCache) set(key string, v *payload) { c.client.Set(key, v) }
func (c *sturdycCache) close()                     {}
