package main

import (
	"context"

	"github.com/maypok86/otter/v2"
)

const otterModule = "github.com/maypok86/otter/v2"

// otterPlain is a cache without a life for its entries.
var otterPlain = contestant[string]{
	name:   "otter",
	module: otterModule,
	open: func(s setup[string]) (cache[string], error) {
		c, err := otter.New(&otter.Options[string, *payload]{MaximumSize: s.capacity})
		return otterCache{c}, err
	},
}

type otterCache struct {
	cache *otter.Cache[string, *payload]
}

func (c otterCache) get(key string) *payload {
	v, _ := c.cache.GetIfPresent(key)
	return v
}

func (c otterCache) set(key string, v *payload) { c.cache.Set(key, v) }
func (c otterCache) close()                     { c.cache.StopAllGoroutines() }

// otterLoading does what Terrace does at a hit: it knows when the entry ends, and
// when to refresh it.
var otterLoading = contestant[string]{
	name:   "otter-loading",
	module: otterModule,
	loads:  true,
	open: func(s setup[string]) (cache[string], error) {
		c, err := otter.New(&otter.Options[string, *payload]{
			MaximumSize:       s.capacity,
			ExpiryCalculator:  otter.ExpiryWriting[string, *payload](ttl),
			RefreshCalculator: otter.RefreshWriting[string, *payload](refreshAfter),
		})
		return otterLoadingCache{otterCache{c}, otter.LoaderFunc[string, *payload](func(_ context.Context, key string) (*payload, error) {
			return s.load(key), nil
		})}, err
	},
}

type otterLoadingCache struct {
	otterCache
	loader otter.Loader[string, *payload]
}

func (c otterLoadingCache) get(key string) *payload {
	v, _ := c.cache.Get(request, key, c.loader)
	return v
}
