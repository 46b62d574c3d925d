package coordinator

import (
	"maps"
	"sync"
	"sync/atomic"
)

// counts counts requests by their outcome (Z3).
type counts struct {
	outcomes spread
	tiers    int

	// Of the background, and of the seldom.
	loads         atomic.Uint64
	loadFailures  atomic.Uint64
	loadPanics    atomic.Uint64
	loadTimeouts  atomic.Uint64
	refreshes     atomic.Uint64
	refreshesShed atomic.Uint64
	fenced        atomic.Uint64
	saturated     atomic.Uint64
	loadWaits     atomic.Uint64
	leases        atomic.Uint64
	leaseWaits    atomic.Uint64
}

// outcome is what a request came to. The hit of tier i is outcomeHit+i.
type outcome int

const (
	outcomeStale outcome = iota
	outcomeAbsent
	outcomeLoad
	outcomeJoin
	outcomeError
	outcomeHit
)

func newCounts(tiers int) *counts {
	return &counts{outcomes: newSpread(int(outcomeHit) + tiers), tiers: tiers}
}

// add returns how many one copy of the counter has come to.
func (c *counts) add(o outcome) uint64 { return c.outcomes.here(int(o)).Add(1) }

func (c *counts) sum(o outcome) uint64 { return c.outcomes.sum(int(o)) }

// hitsSince returns a function that tells how many hits there were since it was last
// called.
func (c *counts) hitsSince() func() uint64 {
	var last uint64
	return func() uint64 {
		before := last
		last = 0
		for i := range c.tiers {
			last += c.sum(outcomeHit + outcome(i))
		}
		return last - before
	}
}

// levelCounts count what happened in one tier.
type levelCounts struct {
	errors     atomic.Uint64
	unreadable atomic.Uint64
	fills      atomic.Uint64
	repeated   atomic.Uint64
	forgotten  atomic.Uint64
	skipped    atomic.Uint64
	kinds      kinds
}

// kinds counts failures by their kind.
type kinds struct {
	mu sync.Mutex
	of map[string]uint64
}

// mostKinds bounds what a store can make of it.
const mostKinds = 64

func (k *kinds) add(kind string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, there := k.of[kind]; !there && len(k.of) >= mostKinds {
		kind = "other"
	}
	if k.of == nil {
		k.of = make(map[string]uint64)
	}
	k.of[kind]++
}

func (k *kinds) all() map[string]uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.of)
}
