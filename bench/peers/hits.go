package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Sizes of the workloads.
const (
	hotKeys    = 1_000
	zipfSkew   = 1.01
	writeEvery = 10 // of the mix
)

func hitHot(p *peers) []block {
	w := workload{p: p, group: "hit-hot", keys: hotKeys, goroutines: 1, rank: uniform(hotKeys)}
	subjects := localSubjects(w, textKey, textPayload, contestants, reads)
	return []block{{
		group: w.group, goroutines: 1,
		subjects: append(subjects, localSubjects(w, intKey, intPayload, intContestants, reads)...),
	}}
}

func hitOneKey(p *peers) []block {
	return localBlocks(workload{p: p, group: "hit-onekey", keys: 1, rank: uniform(1)}, contestants, reads)
}

func hitZipf(p *peers) []block {
	return localBlocks(workload{p: p, group: "hit-zipf", keys: p.Keys, rank: zipf(p.Keys, zipfSkew)}, contestants, reads)
}

func mixed(p *peers) []block {
	return localBlocks(workload{p: p, group: "mix", keys: p.Keys, rank: zipf(p.Keys, zipfSkew)}, writable(contestants), readsAndWrites)
}

// writable leaves out what cannot be written in memory.
func writable(all []contestant[string]) []contestant[string] {
	var left []contestant[string]
	for _, c := range all {
		if !c.readOnly {
			left = append(left, c)
		}
	}
	return left
}

// workload is what a group asks of caches in memory.
type workload struct {
	p          *peers
	group      string
	keys       int
	goroutines int
	rank       func(*rand.Rand) int
}

// localBlocks makes the blocks of a group that is measured with few goroutines and
// with more than there are cores.
func localBlocks(w workload, all []contestant[string], loop loop[string]) []block {
	var blocks []block
	for _, w.goroutines = range []int{2, 8} {
		blocks = append(blocks, block{
			group: w.group, goroutines: w.goroutines,
			subjects: localSubjects(w, textKey, textPayload, all, loop),
		})
	}
	return blocks
}

// loop makes the body that uses the cache. What it counts as missed is no hit. The
// sequences are as long as a power of two, so that to go round in them costs nothing.
type loop[K comparable] func(c cache[K], sequences [][]K, missed *atomic.Int64) body

// localSubjects makes the subjects of a workload. All share its keys and their order.
// Each measurement has a cache of its own: no other lies in memory meanwhile, and the
// luck of where its entries lie is drawn anew.
func localSubjects[K comparable](w workload, key func(seed, i uint64) K, value func(K) *payload, all []contestant[K], loop loop[K]) []subject {
	keys := sync.OnceValue(func() []K { return newKeys(key, w.keys) })
	return drawnSubjects(w, keys, drawOnce(w, keys), value, all, loop)
}

// drawOnce draws the keys when they are first asked for.
func drawOnce[K comparable](w workload, keys func() []K) func() [][]K {
	return sync.OnceValue(func() [][]K { return sequences(keys(), w.goroutines, w.p.draws(), w.rank) })
}

// drawnSubjects makes subjects that share what was drawn of the keys, for as many
// goroutines or more.
func drawnSubjects[K comparable](w workload, keys func() []K, drawn func() [][]K, value func(K) *payload, all []contestant[K], loop loop[K]) []subject {
	var subjects []subject
	for _, c := range all {
		watch := &stopwatch{goroutines: w.goroutines, seconds: w.p.Seconds}
		subjects = append(subjects, subject{
			name: c.name, module: c.module, server: c.server,
			measure: func(ctx context.Context) (sample, error) {
				s := setup[K]{capacity: roomFor(w.keys), load: value, address: w.p.address[c.server]}
				f, err := openFilled(c, s, keys())
				if err != nil {
					return sample{}, err
				}
				defer f.close()
				var missed atomic.Int64
				measured, err := watch.measure(ctx, loop(f.cache, drawn(), &missed))
				if n := missed.Load() + f.loaded.Load(); n > 0 {
					w.p.warn("%s: %s: %d reads were no hits", w.group, c.name, n)
				}
				return measured, err
			},
		})
	}
	return subjects
}

// roomFor returns the capacity with which nothing is evicted: twice the keys, since
// those of some shards are more than their share.
func roomFor(keys int) int { return max(2*keys, 1024) }

// reads gets.
func reads[K comparable](c cache[K], sequences [][]K, missed *atomic.Int64) body {
	return func(worker, n int) error {
		keys := sequences[worker]
		misses := int64(0)
		for i := range n {
			if c.get(keys[i&(len(keys)-1)]) == nil {
				misses++
			}
		}
		missed.Add(misses)
		return nil
	}
}

// readsAndWrites gets, and sets what is there already each tenth time.
func readsAndWrites[K comparable](c cache[K], sequences [][]K, missed *atomic.Int64) body {
	return func(worker, n int) error {
		keys := sequences[worker]
		value := new(payload)
		misses := int64(0)
		for i := range n {
			key := keys[i&(len(keys)-1)]
			if i%writeEvery == 0 {
				c.set(key, value)
			} else if c.get(key) == nil {
				misses++
			}
		}
		missed.Add(misses)
		return nil
	}
}
