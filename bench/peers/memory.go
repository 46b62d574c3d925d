package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
)

// memoryRounds is how often memory is measured at most: it hardly varies.
const memoryRounds = 3

// memory measures what an entry takes of the heap, its key of 16 bytes and its value
// of 64 included, in caches that are full, or nearly where shards do not fill alike.
func memory(p *peers) []block {
	b := block{group: "memory", goroutines: 1, rounds: memoryRounds}
	for _, c := range contestants {
		if !c.sizeless {
			b.subjects = append(b.subjects, memorySubject(p, c))
		}
	}
	return []block{b}
}

func memorySubject(p *peers, c contestant[string]) subject {
	n := p.Entries
	capacity := n
	if c.shards {
		capacity += n/8 + 1000 // the fewer they are, the less alike chance fills shards
	}
	return subject{
		name: c.name, module: c.module,
		measure: func(ctx context.Context) (sample, error) {
			var loads atomic.Int64
			before := liveHeap()
			opened, err := c.open(setup[string]{capacity: capacity, single: true, load: func(key string) *payload {
				loads.Add(1)
				return textPayload(key)
			}})
			if err != nil {
				return sample{}, err
			}
			defer opened.close()
			f := filled[string]{opened, &loads}
			for i := range n {
				if i%fillChunk == 0 {
					if err := context.Cause(ctx); err != nil {
						return sample{}, err
					}
					if c.drops {
						f.settle()
					}
				}
				key := textKey(keySeed, uint64(i)) // in memory of its own
				if c.loads {
					f.get(key)
				} else {
					f.set(key, textPayload(key))
				}
			}
			f.settle()
			after := liveHeap()
			held := countHeld(f, n)
			if held < n {
				p.warn("memory: %s holds %d of %d entries", c.name, held, n)
			}
			if held == 0 || after < before {
				return sample{}, fmt.Errorf("%s: %d entries, %d bytes before and %d after", c.name, held, before, after)
			}
			return sample{heap: float64(after-before) / float64(held)}, nil
		},
	}
}

// countHeld returns how many of the first n keys are there.
func countHeld(f filled[string], n int) int {
	held := 0
	for i := range n {
		before := f.loaded.Load()
		if f.get(textKey(keySeed, uint64(i))) != nil && f.loaded.Load() == before {
			held++
		}
	}
	return held
}

// liveHeap returns the bytes of reachable objects.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go of in the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
