package main

import (
	"context"
	"sync"
	"sync/atomic"
)

// setCapacity is the room in which new keys are set: a key comes again when eight
// times as many others have come.
const setCapacity = 1 << 16

// setGoroutines is how many write at once.
const setGoroutines = 2

// set measures writes: of keys that are there under a contestant's own name, and of
// keys that are not, which evict others, under the name with "-new".
func set(p *peers) []block {
	w := workload{p: p, group: "set", keys: setCapacity, goroutines: setGoroutines, rank: uniform(setCapacity)}
	subjects := localSubjects(w, textKey, textPayload, writable(contestants), writes)
	return []block{
		{group: w.group, of: "keys that are there", goroutines: setGoroutines, subjects: subjects},
		{group: w.group, of: "new keys", goroutines: setGoroutines, subjects: newKeySubjects(p)},
	}
}

func newKeySubjects(p *peers) []subject {
	// The first keys are those that the cache is full of when it begins.
	keys := sync.OnceValue(func() []string { return newKeys(textKey, setCapacity/2+setGoroutines*mostDraws) })
	var subjects []subject
	for _, c := range writable(contestants) {
		if c.unbounded {
			continue
		}
		watch := &stopwatch{goroutines: setGoroutines, seconds: p.Seconds}
		subjects = append(subjects, subject{
			name: c.name + "-new", module: c.module, server: c.server,
			measure: func(ctx context.Context) (sample, error) {
				there, fresh := keys()[:setCapacity/2], keys()[setCapacity/2:]
				f, err := openFilled(c, setup[string]{capacity: setCapacity, load: textPayload, address: p.address[c.server]}, there)
				if err != nil {
					return sample{}, err
				}
				defer f.close()
				sequences := make([][]string, setGoroutines)
				for g := range sequences {
					sequences[g] = fresh[g*mostDraws : (g+1)*mostDraws]
				}
				return watch.measure(ctx, writes(f.cache, sequences, nil))
			},
		})
	}
	return subjects
}

// writes sets.
func writes(c cache[string], sequences [][]string, _ *atomic.Int64) body {
	return func(worker, n int) error {
		keys := sequences[worker]
		value := new(payload)
		for i := range n {
			c.set(keys[i&(len(keys)-1)], value)
		}
		return nil
	}
}
