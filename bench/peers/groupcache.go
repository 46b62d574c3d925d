package main

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/golang/groupcache"
)

// groupCache is a group without peers. Its entries cannot be written or removed, only
// loaded.
var groupCache = contestant[string]{
	name:     "groupcache",
	module:   "github.com/golang/groupcache",
	loads:    true,
	readOnly: true,
	sizeless: true,
	open: func(s setup[string]) (cache[string], error) {
		return groups.open(s), nil
	},
}

// groupCacheEntry is a bound of what groupcache counts for an entry: key and value.
const groupCacheEntry = 16 + 64

// groups keeps the groups that there are. Groupcache does the same, for ever, so one
// is used again where the size is the same.
var groups = groupRegistry{bySize: make(map[int]*groupCacheCache)}

type groupRegistry struct {
	mu     sync.Mutex
	bySize map[int]*groupCacheCache
}

func (r *groupRegistry) open(s setup[string]) *groupCacheCache {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.bySize[s.capacity]
	if !ok {
		c = new(groupCacheCache)
		c.group = groupcache.NewGroup(fmt.Sprint(s.capacity), int64(s.capacity)*groupCacheEntry, groupcache.GetterFunc(
			func(_ context.Context, key string, dest groupcache.Sink) error {
				return dest.SetString(string(c.load(key)[:]))
			}))
		r.bySize[s.capacity] = c
	}
	c.load = s.load
	return c
}

type groupCacheCache struct {
	group *groupcache.Group
	load  func(string) *payload
}

// get takes the value as a string, which groupcache hands out as it lies in its memory;
// its sinks of bytes copy.
func (c *groupCacheCache) get(key string) *payload {
	var v string
	if err := c.group.Get(request, key, groupcache.StringSink(&v)); err != nil || len(v) != len(payload{}) {
		return nil
	}
	return (*payload)(unsafe.Pointer(unsafe.StringData(v))) // which nobody writes to
}

func (c *groupCacheCache) set(string, *payload) {}
func (c *groupCacheCache) close()               {}
