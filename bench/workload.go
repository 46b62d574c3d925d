package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// workload is the reads that every row is given: the same keys in the same order.
type workload struct {
	keys      []string
	sequence  []uint32    // indexes of keys, in the order of the reads
	ops       []operation // what is done, as long as sequence; nil: all are reads
	batch     int         // so many come at one time; zero: one
	notes     []string    // what readers of the report must know of it
	malformed int64       // lines or records of its trace that are left out
	broken    error       // why not all of its trace could be read; nil: it could

	// due are when the first of the sequence are due since the first, by the times of a
	// trace, never one before the last. Nil: all are due at the rate. So many of them are
	// in the warm-up, which takes so long.
	due    []time.Duration
	warm   int
	warmup time.Duration
}

// operation is what is done with a key.
type operation uint8

const (
	opRead operation = iota
	opWrite
	opDelete
)

// closedSequence is the least length of the sequence: the closed loop goes round in
// it, and should not come round soon.
const closedSequence = 1 << 20

// newWorkload draws a sequence of at least n reads over keys whose popularity is
// zipf: the i-th is asked for in proportion to 1/i^skew.
func newWorkload(keys int, skew float64, n int, seed uint64) *workload {
	w := &workload{keys: make([]string, keys), sequence: make([]uint32, max(n, closedSequence))}
	for i := range w.keys {
		w.keys[i] = fmt.Sprintf("key-%07d", i)
	}
	sums := make([]float64, keys)
	sum := 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -skew)
		sums[i] = sum
	}
	r := rand.New(rand.NewPCG(seed, 0x7465727261636521)) // any second half, but always the same
	for i := range w.sequence {
		k := sort.SearchFloat64s(sums, r.Float64()*sum)
		w.sequence[i] = uint32(min(k, keys-1)) // rounding can pass the end
	}
	return w
}

// key returns the index and the text of the i-th read's key.
func (w *workload) key(i int) (uint32, string) {
	k := w.sequence[i%len(w.sequence)]
	return k, w.keys[k]
}

// op returns what the i-th does with its key.
func (w *workload) op(i int) operation {
	if w.ops == nil {
		return opRead
	}
	return w.ops[i%len(w.ops)]
}
