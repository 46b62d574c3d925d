// Package replay drives the stores that caches are made of by recorded traces, as fast as
// they go, and counts hits. Time stands still: lives and refreshes are left out.
package replay

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/otter"
	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/internal/seeding"
	"github.com/terracecache/terrace/tier"
)

// Policies are the evictions that can be replayed, by the names that configurations have
// for them. Those with locks for parts have one part here, which makes them exact.
var Policies = []string{"lru", "2q", "arc", "tinylfu", "w-tinylfu", "sieve"}

// Sharded is the ending of the names of those that are replayed in as many parts as they
// take by themselves.
const Sharded = "-sharded"

// Known reports whether there is such a policy.
func Known(policy string) bool {
	name, sharded := strings.CutSuffix(policy, Sharded)
	return slices.Contains(Policies, name) && (!sharded || !CanBytes(name))
}

// CanBytes reports whether the policy can be bounded by bytes.
func CanBytes(policy string) bool { return policy == "tinylfu" || policy == "w-tinylfu" }

// Memory returns what it takes to replay tiers, in bytes, rather more than less.
func Memory(rec *capture.Trace, tiers []Tier) (bytes int64) {
	if byRecency(rec, tiers) {
		return 0 // to speak of
	}
	for _, t := range tiers {
		bytes += entryMemory(t.Policy) * min(t.Size, rec.Distinct())
	}
	return bytes
}

// entryMemory is what a store of the policy takes for an entry, in bytes, without its value.
// 2Q and ARC know more keys than they have entries.
func entryMemory(policy string) int64 {
	switch policy {
	case "lru" + Sharded:
		return 66
	case "2q", "2q" + Sharded:
		return 190
	case "arc", "arc" + Sharded:
		return 250
	default:
		return 130
	}
}

// Tier is a store to replay.
type Tier struct {
	Name   string
	Policy string
	Size   int64 // what it may hold: entries, or bytes of the objects
	Bytes  bool
}

// entry is what stores hold: the object's size.
type entry = tier.Entry[int64]

// store is a store under replay.
type store struct {
	tier.Store[uint64, int64]
	Tier
	usage func() tier.Usage
	// pending is how many writes have not been worked off; nil: none ever.
	pending func() int64
	hits    int64
	held    int64 // the most that was seen
}

// seededStore returns a store whose hash has the seed, if it is one of Terrace's.
func seededStore(t Tier, seed uint64) (s *store, err error) {
	seeding.Do(seed, func() { s, err = newStore(t) })
	return s, err
}

func newStore(t Tier) (*store, error) {
	name, sharded := strings.CutSuffix(t.Policy, Sharded)
	shards := 1
	if sharded {
		shards = 0
	}
	s := &store{Tier: t}
	var validate error
	cost := func(uint64, *entry) int64 { return 1 }
	if t.Bytes {
		cost = func(_ uint64, e *entry) int64 { return e.Value() }
	}
	switch {
	case name == "tinylfu":
		r := ristretto.New(ristretto.Options[uint64, int64]{MaxCost: t.Size, Cost: cost})
		s.Store, s.usage, s.pending, validate = r, r.Usage, r.Pending, r.Validate()
	case name == "w-tinylfu" && t.Bytes:
		o := otter.New(otter.Options[uint64, int64]{MaxCost: t.Size, Cost: cost})
		s.Store, s.usage, validate = o, o.Usage, o.Validate()
	case name == "w-tinylfu":
		o := otter.New(otter.Options[uint64, int64]{Capacity: int(t.Size)})
		s.Store, s.usage, validate = o, o.Usage, o.Validate()
	case t.Bytes:
		validate = fmt.Errorf("%s is bounded by entries, and not by bytes", t.Policy)
	case name == "sieve":
		v := sieve.NewWith[uint64, int64](sieve.Options{Capacity: int(t.Size), Shards: shards})
		s.Store, s.usage, validate = v, v.Usage, v.Validate()
	default:
		kind, known := map[string]lru.Eviction{"lru": lru.LRU, "2q": lru.TwoQueue, "arc": lru.ARC}[name]
		if !known {
			return nil, fmt.Errorf("there is no policy %q", t.Policy)
		}
		l := lru.NewWith[uint64, int64](lru.Options{Capacity: int(t.Size), Eviction: kind, Shards: shards})
		s.Store, s.usage, validate = l, l.Usage, l.Validate()
	}
	if validate != nil {
		return nil, fmt.Errorf("%s of %d: %w", t.Policy, t.Size, validate)
	}
	return s, nil
}

// settle waits until writes are worked off. Else the store would be judged by how fast
// it is beside this loop, and would hold what is on its way beside what it may hold.
func (s *store) settle() {
	if s.pending == nil {
		return
	}
	for s.pending() > 0 {
		runtime.Gosched()
	}
}

// measure looks at how much the store says that it holds.
func (s *store) measure() {
	u := s.usage()
	if s.Bytes {
		s.held = max(s.held, u.Cost)
	} else {
		s.held = max(s.held, u.Entries)
	}
}
