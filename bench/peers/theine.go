package main

import (
	"context"

	"github.com/Yiling-J/theine-go"
)

// theineLoading is a loading cache with a life for its entries.
var theineLoading = contestant[string]{
	name:   "theine",
	module: "github.com/Yiling-J/theine-go",
	loads:  true,
	open: func(s setup[string]) (cache[string], error) {
		c, err := theine.NewBuilder[string, *payload](int64(s.capacity)).Loading(
			func(_ context.Context, key string) (theine.Loaded[*payload], error) {
				return theine.Loaded[*payload]{Value: s.load(key), Cost: 1, TTL: ttl}, nil
			},
		).Build()
		return theineCache{c}, err
	},
}

type theineCache struct {
	cache *theine.LoadingCache[string, *payload]
}

func (c theineCache) get(key string) *payload {
	v, _ := c.cache.Get(request, key)
	return v
}

func (c theineCache) set(key string, v *payload) { c.cache.SetWithTTL(key, v, 1, ttl) }
func (c theineCache) settle()                    { c.cache.Wait() }
func (c theineCache) close()                     { c.cache.Close() }
