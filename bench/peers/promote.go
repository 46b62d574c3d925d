package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/terracecache/terrace/tier"
)

const (
	promoteKeys = 50_000
	promoteL1   = 512
)

// promote measures a hit of L2 that goes up into a small L1: the keys are asked for in
// turn, so that none is still there when it comes again. Beside it stands what a look
// into the same Ristretto costs without Terrace.
func promote(p *peers) []block {
	return []block{{group: "promote", goroutines: 1, subjects: []subject{
		promoteSubject(p, promoting("terrace-promote", newSieve[string])),
		promoteSubject(p, promoting("terrace-promote-lru", newLRU[string])),
		promoteSubject(p, renamed(ristrettoTTL, "ristretto-ttl-get")),
	}}}
}

// promoting is Terrace over a small L1 and an L2 with room for all.
func promoting(name string, l1 func(capacity int) tier.Store[string, *payload]) contestant[string] {
	c := terrace(name, l1)
	c.open = func(s setup[string]) (cache[string], error) {
		return openTerrace(s,
			tier.Tier[string, *payload]{Name: "l1", Store: l1(promoteL1)},
			tier.Tier[string, *payload]{Name: "l2", Store: newL2[string](s.capacity)},
		)
	}
	return c
}

func renamed[K comparable](c contestant[K], name string) contestant[K] {
	c.name = name
	return c
}

func promoteSubject(p *peers, c contestant[string]) subject {
	keys := sync.OnceValue(func() []string { return newKeys(textKey, promoteKeys) })
	watch := &stopwatch{goroutines: 1, seconds: p.Seconds}
	return subject{
		name: c.name, module: c.module,
		measure: func(ctx context.Context) (sample, error) {
			f, err := openFilled(c, setup[string]{capacity: roomFor(promoteKeys), load: textPayload}, keys())
			if err != nil {
				return sample{}, err
			}
			defer f.close()
			var missed atomic.Int64
			measured, err := watch.measure(ctx, inTurn(f.cache, keys(), &missed))
			if n := missed.Load() + f.loaded.Load(); n > 0 {
				p.warn("promote: %s: %d reads were no hits", c.name, n)
			}
			if t, ok := f.cache.(*terraceCache[string]); ok {
				if tiers := t.cache.Stats().Tiers; tiers[0].Hits > tiers[1].Hits/20 {
					p.warn("promote: %s: %d reads were hits of L1, beside %d of L2", c.name, tiers[0].Hits, tiers[1].Hits)
				}
			}
			return measured, err
		},
	}
}

// inTurn gets one key after the other and goes on where it was.
func inTurn(c cache[string], keys []string, missed *atomic.Int64) body {
	at := 0
	return func(_, n int) error {
		misses := int64(0)
		for range n {
			if c.get(keys[at]) == nil {
				misses++
			}
			if at++; at == len(keys) {
				at = 0
			}
		}
		missed.Add(misses)
		return nil
	}
}
