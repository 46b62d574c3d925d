package main

import (
	"context"
	"runtime"
	"strings"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/tier"
)

// heapPerEntry measures what one entry takes of this process's heap when each of
// the combination's in-memory tiers holds it: entry, key and value, and each tier's
// own structures. It fills tiers of a known number of entries and compares the heap
// after collections. Tiers that are not in memory are left out; without any that is
// it returns -1.
func heapPerEntry(ctx context.Context, s *settings, c combination) (float64, error) {
	if c.local() == 0 {
		return -1, nil
	}
	local := combination{name: c.name, tiers: c.tiers[:c.local()]}
	n := heapEntries(s.ValueSize)
	o := newOrigin(0, s.ValueSize)
	keys := newWorkload(n, 0, 0, 0).keys

	before := liveHeap()
	// Room for all: in the LRU with some to spare, as its shards do not fill alike,
	// which costs nothing; in Ristretto exactly, as its counters are sized by it.
	cache, err := newCache(local.chain(capacities{l1: 2 * n, l2: n}, nil), s, "fixed", o)
	if err != nil {
		return 0, err
	}
	defer cache.Close(context.WithoutCancel(ctx))
	for _, key := range keys {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err := cache.Set(ctx, strings.Clone(key), o.value(key, tier.Now())); err != nil {
			return 0, err
		}
	}
	held := settle(ctx, cache)
	after := liveHeap()
	runtime.KeepAlive(keys)
	runtime.KeepAlive(o)
	if held == 0 || after < before {
		return -1, ctx.Err()
	}
	return float64(after-before) / float64(held), nil
}

// heapEntries is how many entries of the size are filled in: enough that what the
// tiers take when empty does not count much, within 64 MiB.
func heapEntries(valueSize int) int {
	return min(20_000, max(64, 64<<20/valueSize))
}

// settle waits until the tiers have worked off what they queue, and returns how many
// entries the fullest holds.
func settle(ctx context.Context, cache *coordinator.Cache[string, []byte]) int64 {
	const unchanged = 5 // looks in a row
	held, same := int64(-1), 0
	for range 200 {
		most := int64(0)
		for _, t := range cache.Stats().Tiers {
			most = max(most, t.Usage.Entries)
		}
		if same++; most != held {
			held, same = most, 0
		}
		if same == unchanged || ctx.Err() != nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return held
}

// liveHeap returns the bytes of reachable objects.
func liveHeap() uint64 {
	// Twice: the second collection frees what the first has only finalized, and
	// empties what pools kept over it.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
