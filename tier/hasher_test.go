package tier_test

import (
	"math"
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

// TestStorable: what does not equal itself is found by no map.
func TestStorable(t *testing.T) {
	nan := math.NaN()
	type pair struct {
		_  string
		at [2]float64
	}
	type either struct{ any }
	mustBe := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: storable: %v, want %v", what, got, want)
		}
	}
	mustBe("a text", tier.NewHasher[string]().Storable(""), true)
	mustBe("a number", tier.NewHasher[int]().Storable(0), true)
	mustBe("a float", tier.NewHasher[float64]().Storable(1), true)
	mustBe("NaN", tier.NewHasher[float64]().Storable(nan), false)
	mustBe("a float of 32 bits that is NaN", tier.NewHasher[float32]().Storable(float32(nan)), false)
	mustBe("a complex number of NaN", tier.NewHasher[complex128]().Storable(complex(0, nan)), false)
	mustBe("a struct with floats", tier.NewHasher[pair]().Storable(pair{at: [2]float64{1, 2}}), true)
	mustBe("a struct with NaN", tier.NewHasher[pair]().Storable(pair{at: [2]float64{1, nan}}), false)
	mustBe("an interface with a text", tier.NewHasher[any]().Storable("a"), true)
	mustBe("an interface with NaN", tier.NewHasher[any]().Storable(nan), false)
	mustBe("an interface with a slice", tier.NewHasher[any]().Storable([]int{1}), false)
	mustBe("an interface in a struct, with NaN", tier.NewHasher[either]().Storable(either{nan}), false)
	mustBe("a pointer to NaN", tier.NewHasher[*float64]().Storable(&nan), true)
	mustBe("a channel", tier.NewHasher[chan float64]().Storable(nil), true)
}
