package main

import (
	"context"
	"fmt"
)

const (
	mostTiers     = 4
	tierHotKeys   = 500   // of hits in the first tier
	tierKeys      = 5_000 // of the others
	tierRoom      = 2_048 // entries of an upper tier that hits
	smallTierRoom = 64    // of one that does not, as the keys come in turn
	tierValue     = 64    // bytes
)

func growthTiers(g *growth) []block      { return overTiers(g, "growth-tiers", noServer) }
func growthTiersRedis(g *growth) []block { return overTiers(g, "growth-tiers-redis", redisServer) }

// overTiers measures each operation with ever more tiers, of which the last may be in
// a server.
func overTiers(g *growth, group string, server serverKind) []block {
	var blocks []block
	for tiers := 1; tiers <= mostTiers; tiers++ {
		b := block{group: group, of: fmt.Sprint(tiers), x: float64(tiers), goroutines: 1}
		if server == noServer {
			b.subjects = append(b.subjects, chainSubject(g, chainWork{
				name: "terrace-hit-first", tiers: tiers, upper: tierRoom, keys: tierHotKeys, fill: true, do: getDeed, hitsIn: 0,
			}))
		}
		for _, w := range []chainWork{
			{name: "terrace-hit-last", upper: smallTierRoom, keys: tierKeys, fill: true, do: getDeed, hitsIn: -1},
			{name: "terrace-miss", upper: smallTierRoom, keys: g.draws(), fresh: true, do: getDeed},
			{name: "terrace-set", upper: tierRoom, keys: tierHotKeys, fill: true, do: setDeed},
		} {
			w.tiers, w.server = tiers, server
			b.subjects = append(b.subjects, chainSubject(g, w))
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// chainWork is what is done with a chain.
type chainWork struct {
	name   string
	tiers  int
	upper  int // entries of each tier but the last
	server serverKind
	keys   int
	value  int  // bytes; 0: tierValue
	fill   bool // the keys are there
	fresh  bool // they are not, and each is asked for once
	do     deed
	hitsIn int // the tier that hits, with fill and getDeed
}

func chainSubject(g *growth, w chainWork) subject {
	if w.value == 0 {
		w.value = tierValue
	}
	watch := &stopwatch{goroutines: 1, seconds: g.peers.Seconds}
	return subject{
		name: w.name, module: terraceModule, server: w.server,
		measure: func(ctx context.Context) (sample, error) {
			c, err := openChain(chainSetup{
				tiers: w.tiers, upper: w.upper, last: 2 * tierKeys, value: w.value, noLoads: w.fill, redis: g.address[w.server],
			})
			if err != nil {
				return sample{}, err
			}
			defer c.close()
			g.drawn++ // keys that nobody has used
			seed := g.serverSeed + g.drawn<<32
			keys := &turn{keys: newKeys(func(_, i uint64) string { return textKey(seed, i) }, w.keys)}
			if w.fill {
				if err := c.fill(keys.keys); err != nil {
					return sample{}, err
				}
			}
			measured, err := watch.measure(ctx, onKeys(c, keys, w.do))
			if err == nil {
				w.check(g, c)
			}
			return measured, err
		},
	}
}

// check warns where something else was measured than the name says.
func (w chainWork) check(g *growth, c *chain) {
	s := c.Stats()
	hits := uint64(0)
	for _, t := range s.Tiers {
		hits += t.Hits
	}
	if w.fresh && hits > 0 {
		g.warn("%s with %d tiers: %d reads were hits", w.name, w.tiers, hits)
	}
	if own := c.hitsIn(w.hitsIn); w.fill && hits-own > own/20 {
		g.warn("%s with %d tiers: %d reads were hits of another tier, beside %d", w.name, w.tiers, hits-own, own)
	}
}
