package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/tier"
)

const (
	// manyKeys take so long to put in that they are measured in fewer rounds.
	manyKeys       = 1_000_000
	manyKeysRounds = 3
	// manyKeysMemory is where garbage is collected while the keys are put in: to look
	// through gigabytes of entries takes seconds each time.
	manyKeysMemory = 3500 << 20
)

// growthKeys measures hits over ever more keys.
func growthKeys(g *growth) []block {
	var blocks []block
	for n := 1000; n <= g.MostKeys; n *= 10 {
		b := block{group: "growth-keys", of: count(float64(n)) + " keys", x: float64(n), goroutines: 1}
		if n > manyKeys {
			b.rounds = manyKeysRounds
		}
		order := sync.OnceValue(func() string { return shuffledKeys(n) })
		for _, c := range []contestant[string]{
			overSmallL2("terrace-sieve", newSieve[string]), overSmallL2("terrace-lru", newLRU[string]),
			otterLoading, rwMutexMap,
		} {
			b.subjects = append(b.subjects, growthKeysSubject(g, c, n, order))
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// overSmallL2 is Terrace with an L2 that holds little: what a hit of L1 takes does not
// depend on it, and there is room for more keys in L1.
func overSmallL2(name string, l1 func(capacity int) tier.Store[string, *payload]) contestant[string] {
	c := terrace(name, l1)
	c.open = func(s setup[string]) (cache[string], error) {
		return openTerrace(s,
			tier.Tier[string, *payload]{Name: "l1", Store: l1(s.capacity)},
			tier.Tier[string, *payload]{Name: "l2", Store: sieve.New[string, *payload](minKeys)},
		)
	}
	return c
}

// keySize is the length of a key.
const keySize = 16

// shuffledKeys returns the first n keys in random order, one after the other in one
// string. So they are near when they are asked for, as a key is that has just been
// made of a request, and what is waited for is the cache's memory.
func shuffledKeys(n int) string {
	var b strings.Builder
	b.Grow(n * keySize)
	number := make([]uint32, n)
	for i := range number {
		number[i] = uint32(i)
	}
	rand.New(rand.NewPCG(keySeed, uint64(n))).Shuffle(n, func(i, j int) { number[i], number[j] = number[j], number[i] })
	for _, i := range number {
		b.WriteString(textKey(keySeed, uint64(i)))
	}
	return b.String()
}

func growthKeysSubject(g *growth, c contestant[string], n int, order func() string) subject {
	watch := &stopwatch{goroutines: 1, seconds: g.peers.Seconds}
	return subject{
		name: c.name, module: c.module,
		measure: func(ctx context.Context) (sample, error) {
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(manyKeysMemory))
			var loads atomic.Int64
			value := new(payload) // of all keys: nobody reads it
			opened, err := c.open(setup[string]{capacity: roomFor(n), load: func(string) *payload {
				loads.Add(1)
				return value
			}})
			if err != nil {
				return sample{}, fmt.Errorf("open: %w", err)
			}
			defer opened.close()
			for i := range n {
				if i%fillChunk == 0 && ctx.Err() != nil {
					return sample{}, context.Cause(ctx)
				}
				// Each in memory of its own, as caches hold them. It is set, not loaded: a load
				// leaves much garbage, and entries look alike but for the time it took.
				opened.set(textKey(keySeed, uint64(i)), value)
			}
			var missed atomic.Int64
			measured, err := watch.measure(ctx, allInTurn(opened, order(), &missed))
			if n := missed.Load() + loads.Load(); n > 0 {
				g.warn("growth-keys: %s: %d reads were no hits", c.name, n)
			}
			return measured, err
		},
	}
}

// allInTurn is inTurn for keys that stand one after the other.
func allInTurn(c cache[string], keys string, missed *atomic.Int64) body {
	at := 0
	return func(_, n int) error {
		misses := int64(0)
		for range n {
			if c.get(keys[at:at+keySize]) == nil {
				misses++
			}
			if at += keySize; at == len(keys) {
				at = 0
			}
		}
		missed.Add(misses)
		return nil
	}
}
