package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/coordinator"
)

// What a document's cache does to its servers beside what is measured. The document
// does not show its servers, so all of it goes through a cache.

// server is what answers for all of the cache's servers.
func (c *configured) server(probe func(context.Context) error) *remote {
	return &remote{label: "a server of the cache " + c.label, probe: probe}
}

// probe returns an error that names the tier when a server does not answer. With
// several servers in a tier the keys come to all of them, but for bad luck: a key is on
// one.
func (c *configured) probe(ctx context.Context) error {
	cache, err := c.build(c.brief, nil)
	if err != nil {
		return err
	}
	defer closeSoon(ctx, cache)
	// A first connection may take longer than the tier's own timeout allows a call.
	for {
		err := remove(ctx, cache, probeKeys(128))
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// probeMeasured asks the servers of the cache that is being measured, if its tiers have
// failed since it was called last.
func (c *configured) probeMeasured(ctx context.Context) error {
	cache := c.measured.Load()
	if cache == nil {
		return nil
	}
	failed := uint64(0)
	for _, t := range cache.Stats().Tiers {
		failed += t.Errors
	}
	if c.failed.Swap(failed) == failed {
		return nil
	}
	err := c.probe(ctx)
	if err != nil {
		c.failed.Store(math.MaxUint64) // to be asked again in any case
	}
	return err
}

// closeSoon closes a cache without a wait for what it tries again.
func closeSoon(ctx context.Context, cache *coordinator.Cache[string, []byte]) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
	defer cancel()
	_ = cache.Close(ctx)
}

func probeKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("probe-", i)
	}
	return keys
}

// clear removes the keys from the servers. It asks for each by name, so that nothing else
// there is looked at, let alone removed.
func (c *configured) clear(ctx context.Context, keys []string) error {
	c.measured.Store(nil) // it has been closed; later rows are not to be measured beside it
	within := clearWithin
	if ctx.Err() != nil {
		within = clearSoon
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	cache, err := c.build(c.brief, nil)
	if err != nil {
		return err
	}
	defer closeSoon(ctx, cache)
	for _, t := range cache.Stats().Tiers {
		if t.Eviction == "" { // not in memory
			return remove(ctx, cache, keys)
		}
	}
	return nil
}

// removers is how many keys are removed at once.
const removers = 64

// remove deletes the keys. It stops at the first that cannot be, with an error that
// names the tier.
func remove(ctx context.Context, cache *coordinator.Cache[string, []byte], keys []string) error {
	var next atomic.Int64
	var first atomic.Pointer[error]
	var working sync.WaitGroup
	for range min(removers, len(keys)) {
		working.Go(func() {
			for first.Load() == nil {
				i := int(next.Add(1) - 1)
				if i >= len(keys) {
					return
				}
				if err := cache.Delete(ctx, keys[i]); err != nil {
					err = ofTier(err)
					first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	working.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

// ofTier shortens the error of a write to that of the first tier that failed.
func ofTier(err error) error {
	if write := (*coordinator.WriteError)(nil); errors.As(err, &write) && len(write.Tiers) > 0 {
		return fmt.Errorf("tier %s: %w", write.Tiers[0].Tier, write.Tiers[0].Err)
	}
	return err
}
