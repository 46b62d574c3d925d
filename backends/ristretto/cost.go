package ristretto

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/terracecache/terrace/backends/internal/size"
	"github.com/terracecache/terrace/tier"
)

const (
	// places is an entry's part of Ristretto's two maps, when entries have come and gone,
	// and of the notes of ends. It was measured, and is 50 bytes more or less as the maps
	// have just doubled or are about to; shortcuts, 13 to 26 bytes each, are within that.
	places = 180
	// emptyStore is what a store takes without entries and counters, most of it for
	// Ristretto's queue.
	emptyStore = 512 << 10
	// counterSize is what a counter takes if there is a power of two of them.
	counterSize = 4
)

// estimate returns the Cost where none is given.
func estimate[K comparable, V any]() func(K, *tier.Entry[V]) int64 {
	return size.OfEntry[K, V](size.Object(unsafe.Sizeof(item[K, V]{}), true) + places)
}

// counterBytes returns what n counters take: half a byte in each of four rows, and a
// Bloom filter with one wrong in a hundred, all rounded up to powers of two.
func counterBytes(n int64) int64 {
	roundUp := func(n int64) int64 { return 1 << bits.Len64(uint64(n-1)) }
	bloom := float64(n) * -math.Log(0.01) / (math.Ln2 * math.Ln2)
	return 2*roundUp(n) + roundUp(int64(bloom))/8
}
