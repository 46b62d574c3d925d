package main

import "sync"

// The floors are what a map costs that does nothing of what a cache does.

// rwMutexMap is a map under a lock.
var rwMutexMap = contestant[string]{
	name:      "map-rwmutex",
	unbounded: true,
	open: func(setup[string]) (cache[string], error) {
		return &rwMutexMapCache{entries: make(map[string]*payload)}, nil
	},
}

type rwMutexMapCache struct {
	mu      sync.RWMutex
	entries map[string]*payload
}

func (c *rwMutexMapCache) get(key string) *payload {
	c.mu.RLock()
	v := c.entries[key]
	c.mu.RUnlock()
	return v
}

func (c *rwMutexMapCache) set(key string, v *payload) {
	c.mu.Lock()
	c.entries[key] = v
	c.mu.Unlock()
}

func (c *rwMutexMapCache) close() {}

// syncMap is the standard library's concurrent map.
var syncMap = contestant[string]{
	name:      "sync-map",
	unbounded: true,
	open:      func(setup[string]) (cache[string], error) { return new(syncMapCache), nil },
}

type syncMapCache struct {
	entries sync.Map
}

func (c *syncMapCache) get(key string) *payload {
	v, _ := c.entries.Load(key)
	p, _ := v.(*payload)
	return p
}

func (c *syncMapCache) set(key string, v *payload) { c.entries.Store(key, v) }
func (c *syncMapCache) close()                     {}
