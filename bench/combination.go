package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// tierNames are the tiers that a combination chooses from, from the top down: l1 is
// an LRU, l2 Ristretto, l3 a server.
var tierNames = []string{"l1", "l2", "l3"}

// parseCombination returns the tiers of a combination such as "l1+l3".
func parseCombination(text string) ([]string, error) {
	tiers := strings.Split(text, "+")
	last := -1
	for _, t := range tiers {
		i := slices.Index(tierNames, t)
		if i <= last {
			return nil, fmt.Errorf("--combinations: %q is none: want some of %s, from the top down, joined by +", text, strings.Join(tierNames, ", "))
		}
		last = i
	}
	return tiers, nil
}

// combination is one set of tiers to measure.
type combination struct {
	name   string
	tiers  []string
	remote *remote // nil where there is no l3
}

// combinations returns those of the settings, one for each remote where there is an
// l3. Which remote it is stands in the name only where there is a choice.
func combinations(s *settings, remotes []*remote) []combination {
	var all []combination
	for _, text := range s.Combinations {
		tiers, _ := parseCombination(text) // validated
		if !slices.Contains(tiers, "l3") {
			all = append(all, combination{name: text, tiers: tiers})
			continue
		}
		for _, r := range remotes {
			name := text
			if len(remotes) > 1 {
				name += "(" + r.kind + ")"
			}
			all = append(all, combination{name: name, tiers: tiers, remote: r})
		}
	}
	return all
}

// wantsRemote reports whether any combination has an l3.
func (s *settings) wantsRemote() bool {
	return slices.ContainsFunc(s.Combinations, func(c string) bool { return strings.Contains(c, "l3") })
}

// local returns how many of the tiers are in this process's memory.
func (c combination) local() int {
	n := len(c.tiers)
	if c.remote != nil {
		n--
	}
	return n
}

// openRemote returns the store of l3, or nil where there is none.
func (c combination) openRemote(prefix string) (tier.Bytes, error) {
	if c.remote == nil {
		return nil, nil
	}
	return c.remote.open(prefix)
}

// capacities are the sizes of the in-memory tiers, in entries.
type capacities struct{ l1, l2 int }

// chain makes the combination's tiers, empty. l3 is nil where there is none.
func (c combination) chain(size capacities, l3 tier.Bytes) []tier.Tier[string, []byte] {
	var chain []tier.Tier[string, []byte]
	for _, name := range c.tiers {
		t := tier.Tier[string, []byte]{Name: name}
		switch name {
		case "l1":
			t.Store = lru.New[string, []byte](size.l1)
		case "l2":
			t.Store = ristretto.New(ristretto.Options[string, []byte]{
				MaxCost: int64(size.l2),
				// Bounded by entries like l1, so that the two can be compared.
				Cost: func(string, *tier.Entry[[]byte]) int64 { return 1 },
			})
		case "l3":
			t.Store = tier.Encode[string](l3, codec.Raw())
		}
		chain = append(chain, t)
	}
	return chain
}

var policyNames = []string{"fixed", "swr", "xfetch"}

// refresh returns the policy of the name, with the lifetime that it is used with:
// only swr serves stale values.
func (s *settings) refresh(name string) (policy.Strategy, policy.Lifetime) {
	life := policy.Lifetime{TTL: s.TTL, StaleIfError: s.StaleIfError}
	switch name {
	case "swr":
		life.StaleWhileRevalidate = s.Stale
		return policy.StaleWhileRevalidate{}, life
	case "xfetch":
		return policy.XFetch{Beta: s.Beta}, life
	default:
		return policy.Fixed{}, life
	}
}

// newCache makes the cache that is measured. It logs nothing: what goes wrong is
// found in its statistics.
func newCache(chain []tier.Tier[string, []byte], s *settings, policyName string, o *origin) (*coordinator.Cache[string, []byte], error) {
	refresh, life := s.refresh(policyName)
	return coordinator.New(coordinator.Options[string, []byte]{
		Name:     "bench",
		Tiers:    chain,
		Lifetime: life,
		Refresh:  refresh,
		Load:     o.load,
		Limits:   coordinator.Limits{LoadTimeout: s.OriginLatency + 10*time.Second},
		Logger:   slog.New(slog.DiscardHandler),
	})
}
