package main

import "github.com/samber/hot"

// hotLRU is an LRU with loader and revalidation, under its one lock: with WithSharding
// the shards have none (v0.11.0), and break under more than one goroutine.
var hotLRU = contestant[string]{
	name:   "hot",
	module: "github.com/samber/hot",
	loads:  true,
	open: func(s setup[string]) (cache[string], error) {
		loader := func(keys []string) (map[string]*payload, error) {
			found := make(map[string]*payload, len(keys))
			for _, key := range keys {
				found[key] = s.load(key)
			}
			return found, nil
		}
		c := hot.NewHotCache[string, *payload](hot.LRU, s.capacity).
			WithTTL(refreshAfter).
			WithRevalidation(ttl-refreshAfter, loader).
			WithLoaders(loader).
			Build()
		return hotCache{c}, nil
	},
}

type hotCache struct {
	cache *hot.HotCache[string, *payload]
}

func (c hotCache) get(key string) *payload {
	v, _, _ := c.cache.Get(key)
	return v
}

func (c hotCache) set(key string, v *payload) { c.cache.Set(key, v) }
func (c hotCache) close()                     {}
