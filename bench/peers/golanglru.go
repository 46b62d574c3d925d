package main

import (
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/expirable"
)

const golangLRUModule = "github.com/hashicorp/golang-lru/v2"

// golangLRU is the plain LRU under one mutex.
var golangLRU = contestant[string]{
	name:   "golang-lru",
	module: golangLRUModule,
	open: func(s setup[string]) (cache[string], error) {
		c, err := lru.New[string, *payload](s.capacity)
		return golangLRUCache{c}, err
	},
}

type golangLRUCache struct {
	cache *lru.Cache[string, *payload]
}

func (c golangLRUCache) get(key string) *payload {
	v, _ := c.cache.Get(key)
	return v
}

func (c golangLRUCache) set(key string, v *payload) { c.cache.Add(key, v) }
func (c golangLRUCache) close()                     {}

// golangLRUExpirable has one life for all entries.
var golangLRUExpirable = contestant[string]{
	name:   "golang-lru-expirable",
	module: golangLRUModule,
	open: func(s setup[string]) (cache[string], error) {
		return expirableCache{expirable.NewLRU[string, *payload](s.capacity, nil, ttl)}, nil
	},
}

type expirableCache struct {
	cache *expirable.LRU[string, *payload]
}

func (c expirableCache) get(key string) *payload {
	v, _ := c.cache.Get(key)
	return v
}

func (c expirableCache) set(key string, v *payload) { c.cache.Add(key, v) }

// close empties the cache: its goroutine cannot be stopped and holds on to it.
func (c expirableCache) close() { c.cache.Purge() }
