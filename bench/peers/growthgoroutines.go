package main

import (
	"fmt"
	"slices"
	"sync"
)

// growthZipfKeys are those of the plots over goroutines.
const growthZipfKeys = 100_000

var growthOfGoroutines = []int{1, 2, 4, 8, 16}

// growthRivals are whom Terrace is drawn beside: what is nearest to it, a plain cache
// under one lock, and the floor.
var growthRivals = []contestant[string]{terraceSieve, terraceLRU, otterLoading, golangLRU, rwMutexMap}

func growthGoroutines(g *growth) []block {
	return overGoroutines(g, "growth-goroutines", reads[string])
}

func growthMix(g *growth) []block {
	return overGoroutines(g, "growth-mix", readsAndWrites[string])
}

func overGoroutines(g *growth, group string, loop loop[string]) []block {
	w := workload{p: g.peers, group: group, keys: g.Keys, rank: zipf(g.Keys, zipfSkew)}
	w.goroutines = slices.Max(growthOfGoroutines)
	keys := sync.OnceValue(func() []string { return newKeys(textKey, w.keys) })
	drawn := drawOnce(w, keys) // once for all steps: the more there is, the longer garbage is looked for
	var blocks []block
	for _, w.goroutines = range growthOfGoroutines {
		blocks = append(blocks, block{
			group: group, of: fmt.Sprint(w.goroutines), x: float64(w.goroutines), goroutines: w.goroutines,
			subjects: drawnSubjects(w, keys, drawn, textPayload, growthRivals, loop),
		})
	}
	return blocks
}
