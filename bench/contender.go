package main

import (
	"context"

	"github.com/terracecache/terrace/coordinator"
)

// contender is what one row measures. It is measured once.
type contender struct {
	label  string // of the row, for people
	named  row    // the row, with no more than its names
	remote *remote
	// open makes the cache, whose loads ask the origin.
	open func(o *origin) (*coordinator.Cache[string, []byte], error)
	// clear removes the keys from the server, when the cache has been closed. Nil where
	// there is nothing to remove.
	clear func(ctx context.Context, keys []string) error
	// describe completes the names by what the cache says that it runs. May be nil.
	describe func(r *row, stats coordinator.Stats)
}

// group is contenders that share the price of an entry.
type group struct {
	name       string
	heap       func(ctx context.Context) (float64, error) // nil: not measured
	contenders []*contender
}

// groups returns the combinations, each under every policy.
func groups(s *settings, all []combination) []group {
	var groups []group
	for _, c := range all {
		g := group{name: c.name, heap: func(ctx context.Context) (float64, error) { return heapPerEntry(ctx, s, c) }}
		for _, policyName := range s.Policies {
			g.contenders = append(g.contenders, c.under(policyName, s))
		}
		groups = append(groups, g)
	}
	return groups
}

// under returns the combination under a policy.
func (c combination) under(policyName string, s *settings) *contender {
	t := &contender{
		label:  c.name + ", " + policyName,
		named:  row{Combination: c.name, Policy: policyName},
		remote: c.remote,
	}
	prefix := newPrefix()
	t.open = func(o *origin) (*coordinator.Cache[string, []byte], error) {
		l3, err := c.openRemote(prefix)
		if err != nil {
			return nil, err
		}
		return newCache(c.chain(capacities{l1: s.L1Entries, l2: s.L2Entries}, l3), s, policyName, o)
	}
	if c.remote != nil {
		t.clear = func(ctx context.Context, keys []string) error { return c.remote.clear(ctx, prefix, keys) }
	}
	return t
}
