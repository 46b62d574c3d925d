package tier_test

import (
	"testing"

	"github.com/terracecache/terrace/internal/seeding"
	"github.com/terracecache/terrace/tier"
)

// seeded returns a hasher of a replay.
func seeded[K comparable](seed uint64) (h tier.Hasher[K]) {
	seeding.Do(seed, func() { h = tier.NewHasher[K]() })
	return h
}

// TestHashersDiffer: nobody can know how a store hashes, unless it is of a replay.
func TestHashersDiffer(t *testing.T) {
	differ := func(what string, a, b tier.Hasher[uint64], want bool) {
		t.Helper()
		for key := range uint64(100) {
			if got := a.Hash(key) != b.Hash(key); got != want {
				t.Fatalf("%s: key %d has the hashes %x and %x", what, key, a.Hash(key), b.Hash(key))
			}
		}
	}
	differ("two stores", tier.NewHasher[uint64](), tier.NewHasher[uint64](), true)
	differ("one seed", seeded[uint64](7), seeded[uint64](7), false)
	differ("two seeds", seeded[uint64](7), seeded[uint64](8), true)
	differ("after a replay", seeded[uint64](7), tier.NewHasher[uint64](), true)
	if a, b := seeded[string](7), seeded[string](7); a.Hash("key") == b.Hash("key") {
		t.Error("texts are hashed alike with a seed: want that of numbers alone")
	}
}

// TestSeededHashesAreSpread: all bits of the hashes of keys in a row are as often set as not.
func TestSeededHashesAreSpread(t *testing.T) {
	const keys = 1 << 14
	h := seeded[uint64](0)
	var set [64]int
	for key := range uint64(keys) {
		for bit := range set {
			set[bit] += int(h.Hash(key) >> bit & 1)
		}
	}
	for bit, n := range set {
		if off := n - keys/2; off*off > 25*keys/4 { // 5 standard deviations
			t.Errorf("bit %d is set in %d of %d hashes", bit, n, keys)
		}
	}
}
