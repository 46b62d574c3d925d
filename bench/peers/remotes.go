package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
)

// remoteKeys is how many keys a contestant has on its server.
const remoteKeys = 1_000

// batchSize is the number of keys of a batch.
const batchSize = 64

func remote100(p *peers) []block  { return remoteBlocks(p, "remote-100", 100) }
func remote1024(p *peers) []block { return remoteBlocks(p, "remote-1024", 1024) }

// remoteBlocks makes the blocks that read values of the size from servers.
func remoteBlocks(p *peers, group string, size int) []block {
	var blocks []block
	for _, goroutines := range []int{64, 512, 1} {
		b := block{group: group, goroutines: goroutines}
		for i, c := range remoteContestants {
			b.subjects = append(b.subjects, remoteSubject(p, uint64(i), c, goroutines, size))
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func remoteSubject(p *peers, number uint64, c remoteContestant, goroutines, size int) subject {
	keys := sync.OnceValue(func() []string { return serverKeys(p, number) })
	drawn := sync.OnceValue(func() [][]string { return sequences(keys(), goroutines, remoteKeys, uniform(remoteKeys)) })
	watch := &stopwatch{goroutines: goroutines, seconds: p.Seconds}
	return subject{
		name: c.name, module: c.module, server: c.server,
		measure: func(ctx context.Context) (sample, error) {
			opened, err := c.open(remoteSetup{address: p.address[c.server], goroutines: goroutines})
			if err != nil {
				return sample{}, err
			}
			defer opened.close()
			if err := writeAll(keys(), size, opened.set); err != nil {
				return sample{}, err
			}
			return watch.measure(ctx, func(worker, n int) error {
				keys := drawn()[worker]
				for i := range n {
					key := keys[i%len(keys)]
					v, err := opened.get(request, key)
					if err != nil {
						return err
					}
					if len(v) != size {
						return fmt.Errorf("%s has %d bytes: %w", key, len(v), errMissed)
					}
				}
				return nil
			})
		},
	}
}

// batch64 makes the blocks that read batches of keys with values of 100 bytes. Terrace
// is not among the contestants: it has no call for many keys.
func batch64(p *peers) []block {
	var blocks []block
	for _, goroutines := range []int{64, 1} {
		b := block{group: "batch-64", goroutines: goroutines}
		for i, c := range batchContestants {
			b.subjects = append(b.subjects, batchSubject(p, uint64(len(remoteContestants)+i), c, goroutines))
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// batchSubject counts each key of a batch as an operation.
func batchSubject(p *peers, number uint64, c batchContestant, goroutines int) subject {
	const size = 100
	keys := sync.OnceValue(func() []string { return serverKeys(p, number) })
	drawn := sync.OnceValue(func() [][][]string { return batches(keys(), goroutines) })
	watch := &stopwatch{goroutines: goroutines, seconds: p.Seconds}
	return subject{
		name: c.name, module: c.module, server: c.server,
		measure: func(ctx context.Context) (sample, error) {
			opened, err := c.open(remoteSetup{address: p.address[c.server], goroutines: goroutines})
			if err != nil {
				return sample{}, err
			}
			defer opened.close()
			if err := writeAll(keys(), size, opened.set); err != nil {
				return sample{}, err
			}
			s, err := watch.measure(ctx, func(worker, n int) error {
				batches := drawn()[worker]
				for i := range n {
					found, err := opened.getMany(request, batches[i%len(batches)])
					if err != nil {
						return err
					}
					if found != batchSize {
						return fmt.Errorf("%d of %d keys: %w", batchSize-found, batchSize, errMissed)
					}
				}
				return nil
			})
			s.ns /= batchSize
			s.allocs /= batchSize
			return s, err
		},
	}
}

// batches draws batches of different keys for each goroutine.
func batches(keys []string, goroutines int) [][][]string {
	const drawn = 64
	all := make([][][]string, goroutines)
	for g := range all {
		r := rand.New(rand.NewPCG(keySeed, uint64(g)))
		all[g] = make([][]string, drawn)
		for i := range all[g] {
			for _, k := range r.Perm(len(keys))[:batchSize] {
				all[g][i] = append(all[g][i], keys[k])
			}
		}
	}
	return all
}

// serverKeys returns keys that no other contestant and no other run has, since each
// writes in a form of its own.
func serverKeys(p *peers, number uint64) []string {
	keys := make([]string, remoteKeys)
	for i := range keys {
		keys[i] = textKey(p.serverSeed+number<<32, uint64(i))
	}
	return keys
}

// writeAll writes a value of the size under each key. It does not compress.
func writeAll(keys []string, size int, set func(ctx context.Context, key string, value []byte) error) error {
	value := make([]byte, size)
	r := rand.NewChaCha8([32]byte{})
	for _, key := range keys {
		_, _ = r.Read(value) // never fails
		if err := set(request, key, value); err != nil {
			return err
		}
	}
	return nil
}
