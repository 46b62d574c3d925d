package main

import (
	"context"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

const terraceModule = "github.com/terracecache/terrace"

// newLRU makes the L1 of the rows "terrace-lru…".
func newLRU[K comparable](capacity int) tier.Store[K, *payload] {
	return lru.New[K, *payload](capacity)
}

var (
	terraceLRU    = terrace("terrace-lru", newLRU[string])
	terraceLRUInt = terrace("terrace-lru-int", newLRU[int])
)

// terrace is the whole coordinator over the L1 and Ristretto, with lives, XFetch and a
// loader. Where a row compares single tiers it has the L1 alone.
func terrace[K comparable](name string, l1 func(capacity int) tier.Store[K, *payload]) contestant[K] {
	return contestant[K]{
		name:   name,
		module: terraceModule,
		loads:  true,
		shards: true,
		open: func(s setup[K]) (cache[K], error) {
			tiers := []tier.Tier[K, *payload]{{Name: "l1", Store: l1(s.capacity)}}
			if !s.single {
				tiers = append(tiers, tier.Tier[K, *payload]{Name: "l2", Store: newL2[K](s.capacity)})
			}
			return openTerrace(s, tiers...)
		},
	}
}

// newL2 makes a Ristretto that counts entries.
func newL2[K comparable](capacity int) tier.Store[K, *payload] {
	return ristretto.New(ristretto.Options[K, *payload]{
		MaxCost:     int64(capacity),
		NumCounters: 10 * int64(capacity),
		Cost:        func(K, *tier.Entry[*payload]) int64 { return 1 },
	})
}

func openTerrace[K comparable](s setup[K], tiers ...tier.Tier[K, *payload]) (*terraceCache[K], error) {
	c, err := coordinator.New(coordinator.Options[K, *payload]{
		Tiers:    tiers,
		Lifetime: policy.Lifetime{TTL: ttl, Jitter: 0.1},
		Refresh:  policy.XFetch{},
		Load:     func(_ context.Context, key K) (*payload, error) { return s.load(key), nil },
	})
	return &terraceCache[K]{c}, err
}

type terraceCache[K comparable] struct {
	cache *coordinator.Cache[K, *payload]
}

func (c *terraceCache[K]) get(key K) *payload {
	v, _ := c.cache.Get(request, key)
	return v
}

func (c *terraceCache[K]) set(key K, v *payload) {
	// Tiers in memory do not fail.
	_ = c.cache.Set(request, key, v)
}

// settle waits until Ristretto has worked off what it queued.
func (c *terraceCache[K]) settle() {
	held := int64(-1)
	for {
		stats := c.cache.Stats()
		l := stats.Tiers[len(stats.Tiers)-1].Usage.Entries
		if l == held {
			return
		}
		held = l
		time.Sleep(time.Millisecond)
	}
}

func (c *terraceCache[K]) close() { _ = c.cache.Close(request) }
