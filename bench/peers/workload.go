package main

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"sort"
	"sync"
)

// payload is what all caches hold, by pointer. It begins with its key, so that an
// answer can be checked.
type payload [64]byte

// textKey returns the i-th key as 16 bytes. Neighbours have nothing in common, as with
// hashes and UUIDs.
func textKey(seed, i uint64) string {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], mix(seed+i))
	return hex.EncodeToString(number[:])
}

// intKey returns the i-th key as an integer.
func intKey(seed, i uint64) int { return int(mix(seed + i)) }

// mix is splitmix64's finalizer, which maps no two numbers to one.
func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// textPayload is the value of a key.
func textPayload(key string) *payload {
	v := new(payload)
	copy(v[:], key)
	return v
}

// intPayload is the value of a key.
func intPayload(key int) *payload {
	v := new(payload)
	binary.LittleEndian.PutUint64(v[:], uint64(key))
	return v
}

// keySeed makes the keys the same in every run.
const keySeed = 0x7465727261636521

// newKeys returns n different keys.
func newKeys[K comparable](key func(seed, i uint64) K, n int) []K {
	keys := make([]K, n)
	for i := range keys {
		keys[i] = key(keySeed, uint64(i))
	}
	return keys
}

// mostDraws is how many reads of each goroutine are drawn before the clock starts; a
// loop goes round in them.
const mostDraws = 1 << 18

// draws returns how many are drawn in this run: less than mostDraws where measurements
// are too short to need as many. It is a power of two.
func (s *settings) draws() int {
	n := 1 << 10
	for n < mostDraws && float64(n) < s.Seconds*1e7 {
		n *= 2
	}
	return n
}

// sequences returns a sequence of n keys for each goroutine. Keys themselves lie in
// it, in the order of the reads, so that the loop does not look anything up.
func sequences[K comparable](keys []K, goroutines, n int, rank func(*rand.Rand) int) [][]K {
	all := make([][]K, goroutines)
	for g := range all {
		r := rand.New(rand.NewPCG(keySeed, uint64(g)))
		all[g] = make([]K, n)
		for i := range all[g] {
			all[g][i] = keys[rank(r)]
		}
	}
	return all
}

// uniform draws all of n alike.
func uniform(n int) func(*rand.Rand) int {
	return func(r *rand.Rand) int { return r.IntN(n) }
}

// zipf draws the i-th of n in proportion to 1/i^skew.
func zipf(n int, skew float64) func(*rand.Rand) int {
	sums := sync.OnceValue(func() []float64 {
		sums := make([]float64, n)
		sum := 0.0
		for i := range sums {
			sum += math.Pow(float64(i+1), -skew)
			sums[i] = sum
		}
		return sums
	})
	return func(r *rand.Rand) int {
		sums := sums()
		return min(sort.SearchFloat64s(sums, r.Float64()*sums[n-1]), n-1) // rounding can pass the end
	}
}
