package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// cache is a contestant as the loops call it: one call through an interface for all
// alike, and the rival's own behind it.
type cache[K comparable] interface {
	// get returns the value under key. Where the cache has a loader it is the cache
	// that calls it; without one a miss is nil.
	get(key K) *payload
	set(key K, v *payload)
	close()
}

// settler is a cache that works off its writes later. settle returns when it has.
type settler interface{ settle() }

// filler is a cache that is filled faster than by one set after the other.
type filler[K comparable] interface {
	fill(keys []K, value func(K) *payload) error
}

// contestant is a cache in memory that is measured.
type contestant[K comparable] struct {
	name   string
	module string // whose version stands beside the figures
	open   func(setup[K]) (cache[K], error)

	loads     bool // a miss calls the loader, once for all who miss it together
	readOnly  bool // it has no Set
	unbounded bool // it never evicts
	drops     bool // it drops writes that come faster than it works them off
	shards    bool // each of its shards evicts by itself, so that it needs room to hold all
	sizeless  bool // its memory cannot be given back, or is not its own
	server    serverKind
}

// setup is what a contestant is opened with.
type setup[K comparable] struct {
	capacity int              // entries
	load     func(K) *payload // the origin
	single   bool             // Terrace: one tier, as the rivals have
	address  string           // of the server
}

// Lives are long enough that nothing expires and nothing is refreshed while hits are
// measured: the price is that of being able to.
const (
	ttl          = time.Hour
	refreshAfter = 30 * time.Minute
)

// request is the context of all calls: one that can end, as a server's requests have,
// and does not.
var request, endRequests = context.WithCancel(context.Background())

// filled is a cache that holds all the keys it will be asked for.
type filled[K comparable] struct {
	cache[K]
	loaded *atomic.Int64 // calls of the loader since then
}

// fillChunk is how many keys are written at once to a cache that drops what does not
// fit into its queue.
const fillChunk = 1000

// fillTries bounds the repeats for caches that drop writes.
const fillTries = 20

// openFilled opens a contestant and fills it with the keys: by its loader where it has
// one, so that entries look as they do in use, with the time that their load took.
func openFilled[K comparable](c contestant[K], s setup[K], keys []K) (filled[K], error) {
	f := filled[K]{loaded: new(atomic.Int64)}
	origin := s.load
	s.load = func(key K) *payload {
		f.loaded.Add(1)
		return origin(key)
	}
	var err error
	if f.cache, err = c.open(s); err != nil {
		return f, fmt.Errorf("open %s: %w", c.name, err)
	}
	if bulk, ok := f.cache.(filler[K]); ok {
		if err := bulk.fill(keys, origin); err != nil {
			f.close()
			return f, fmt.Errorf("fill %s: %w", c.name, err)
		}
		return f, nil
	}
	missing := keys
	for range fillTries {
		for i, key := range missing {
			if c.loads {
				f.get(key)
			} else {
				f.set(key, origin(key))
			}
			if c.drops && i%fillChunk == 0 {
				f.settle()
			}
		}
		f.settle()
		if missing = f.missing(keys); len(missing) == 0 {
			return f, nil
		}
	}
	f.close()
	return f, fmt.Errorf("%s does not keep %d of %d keys", c.name, len(missing), len(keys))
}

func (f filled[K]) settle() {
	if s, ok := f.cache.(settler); ok {
		s.settle()
	}
}

// missing returns the keys that are not there. It makes loaders load them.
func (f filled[K]) missing(keys []K) []K {
	var missing []K
	for _, key := range keys {
		f.loaded.Store(0)
		if f.get(key) == nil || f.loaded.Load() > 0 {
			missing = append(missing, key)
		}
	}
	f.loaded.Store(0)
	return missing
}

// errMissed is a read of a server that was no hit.
var errMissed = errors.New("a key that was written is not there")
