package main

import "github.com/jellydator/ttlcache/v3"

// ttlCache is a loading cache with a life for its entries. By default a read extends
// that life, which nobody else here does and which costs it time; it is off.
var ttlCache = contestant[string]{
	name:   "ttlcache",
	module: "github.com/jellydator/ttlcache/v3",
	loads:  true,
	open: func(s setup[string]) (cache[string], error) {
		loader := ttlcache.LoaderFunc[string, *payload](func(c *ttlcache.Cache[string, *payload], key string) *ttlcache.Item[string, *payload] {
			return c.Set(key, s.load(key), ttlcache.DefaultTTL)
		})
		c := ttlcache.New(
			ttlcache.WithCapacity[string, *payload](uint64(s.capacity)),
			ttlcache.WithTTL[string, *payload](ttl),
			ttlcache.WithDisableTouchOnHit[string, *payload](),
			ttlcache.WithLoader(ttlcache.NewSuppressedLoader[string, *payload](loader, nil)),
		)
		go c.Start()
		return ttlCacheCache{c}, nil
	},
}

type ttlCacheCache struct {
	cache *ttlcache.Cache[string, *payload]
}

func (c ttlCacheCache) get(key string) *payload {
	item := c.cache.Get(key)
	if item == nil {
		return nil
	}
	return item.Value()
}

func (c ttlCacheCache) set(key string, v *payload) { c.cache.Set(key, v, ttlcache.DefaultTTL) }
func (c ttlCacheCache) close()                     { c.cache.Stop() }
