package main

import (
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

const ristrettoModule = "github.com/dgraph-io/ristretto/v2"

// ristrettoPlain is Ristretto with a cost of one an entry.
var ristrettoPlain = contestant[string]{
	name:   "ristretto",
	module: ristrettoModule,
	drops:  true,
	open:   func(s setup[string]) (cache[string], error) { return newRistretto(s, 0) },
}

// ristrettoTTL gives each entry a life.
var ristrettoTTL = contestant[string]{
	name:   "ristretto-ttl",
	module: ristrettoModule,
	drops:  true,
	open:   func(s setup[string]) (cache[string], error) { return newRistretto(s, ttl) },
}

// newRistretto follows Ristretto's advice: ten counters an entry, and 64 keys in a
// buffer of reads.
func newRistretto(s setup[string], ttl time.Duration) (cache[string], error) {
	c, err := ristretto.NewCache(&ristretto.Config[string, *payload]{
		NumCounters:        10 * int64(s.capacity),
		MaxCost:            int64(s.capacity),
		BufferItems:        64,
		IgnoreInternalCost: true, // the cost is a number of entries
	})
	return ristrettoCache{c, ttl}, err
}

type ristrettoCache struct {
	cache *ristretto.Cache[string, *payload]
	ttl   time.Duration // 0: none
}

func (c ristrettoCache) get(key string) *payload {
	v, _ := c.cache.Get(key)
	return v
}

func (c ristrettoCache) set(key string, v *payload) { c.cache.SetWithTTL(key, v, 1, c.ttl) }
func (c ristrettoCache) settle()                    { c.cache.Wait() }
func (c ristrettoCache) close()                     { c.cache.Close() }
