package tier_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/terracecache/terrace/tier"
)

// TestHashesAreSpread: all bits of the hashes of keys that are much alike are as often set as
// not, and each part of a hash by which a store chooses falls on all places alike.
func TestHashesAreSpread(t *testing.T) {
	const keys = 1 << 15
	texts := func(format string) func() func(i int) uint64 {
		return func() func(i int) uint64 {
			h := tier.NewHasher[string]()
			return func(i int) uint64 { return h.Hash(fmt.Sprintf(format, i)) }
		}
	}
	for name, open := range map[string]func() func(i int) uint64{
		"of 3 bytes": func() func(i int) uint64 {
			h := tier.NewHasher[string]()
			return func(i int) uint64 { return h.Hash(string([]byte{byte(i), 'k', byte(i >> 8)})) }
		},
		"of 5 bytes":              texts("%05d"),
		"of 8 bytes":              texts("%08d"),
		"of 12 bytes":             texts("user:%07d"),
		"of 16 bytes":             texts("%016d"),
		"of 20 bytes":             texts("product-catalog:%04x"),
		"of 32 bytes":             texts("%032d"),
		"of 32 bytes, first ones": texts("%06d-and-what-follows-is-alike"),
		"of 33 bytes":             texts("%033d"),
		"of 100 bytes":            texts("%0100d"),
		"of all lengths":          texts("key%d"),
		"numbers":                 func() func(i int) uint64 { return tier.NewHasher[int]().Hash },
		"numbers in steps of 4,096": func() func(i int) uint64 {
			h := tier.NewHasher[int64]()
			return func(i int) uint64 { return h.Hash(int64(i) << 12) }
		},
		"numbers at the top": func() func(i int) uint64 {
			h := tier.NewHasher[uint64]()
			return func(i int) uint64 { return h.Hash(uint64(i) << 49) }
		},
		"numbers of 32 bits": func() func(i int) uint64 {
			h := tier.NewHasher[uint32]()
			return func(i int) uint64 { return h.Hash(uint32(i)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			hash := open()
			var set [64]int
			const places = 256
			var low, middle, high [places]int
			seen := make(map[uint64]bool, keys)
			for i := range keys {
				h := hash(i)
				if seen[h] {
					t.Fatalf("key %d has the hash %#x of another", i, h)
				}
				seen[h] = true
				for bit := range set {
					set[bit] += int(h >> bit & 1)
				}
				low[h%places]++
				middle[h>>24%places]++
				high[h>>56]++
			}
			for bit, n := range set {
				if off := n - keys/2; off*off > 36*keys/4 { // 6 standard deviations
					t.Errorf("bit %d is set in %d of %d hashes", bit, n, keys)
				}
			}
			for part, got := range map[string][places]int{"low": low, "middle": middle, "high": high} {
				chi := 0.0
				for _, n := range got {
					const want = keys / places
					chi += float64((n-want)*(n-want)) / want
				}
				if off := (chi - (places - 1)) / math.Sqrt(2*(places-1)); off > 7 {
					t.Errorf("the %s bits: %.0f, %.1f standard deviations more than chance makes", part, chi, off)
				}
			}
		})
	}
}

// TestEachBitOfATextCounts, and its length.
func TestEachBitOfATextCounts(t *testing.T) {
	h := tier.NewHasher[string]()
	seen := make(map[uint64]string)
	for n := range 70 {
		text := strings.Repeat("\x00", n)
		if other, there := seen[h.Hash(text)]; there {
			t.Errorf("%d and %d zero bytes have one hash", n, len(other))
		}
		seen[h.Hash(text)] = text
		for at := range n {
			for bit := range 8 {
				changed := []byte(text)
				changed[at] ^= 1 << bit
				if h.Hash(string(changed)) == h.Hash(text) {
					t.Errorf("of %d bytes: bit %d of byte %d does not count", n, bit, at)
				}
			}
		}
	}
}

// TestHashOfNamedTypes: a key's type may have a name of its own, and a text may lie anywhere.
func TestHashOfNamedTypes(t *testing.T) {
	type name string
	type id uint64
	names, ids := tier.NewHasher[name](), tier.NewHasher[id]()
	padded := "..a name that is cut out of another"
	if a, b := names.Hash("a name"), names.Hash(name(padded[2:8])); a != b {
		t.Errorf("one name has the hashes %#x and %#x", a, b)
	}
	if a, b := ids.Hash(7), ids.Hash(id(len("1234567"))); a != b {
		t.Errorf("one number has the hashes %#x and %#x", a, b)
	}
	if a, b := names.Hash("a name"), tier.NewHasher[name]().Hash("a name"); a == b {
		t.Errorf("two hashers agree on %#x", a)
	}
	if a, b := ids.Hash(7), tier.NewHasher[id]().Hash(7); a == b {
		t.Errorf("two hashers agree on %#x", a)
	}
	if n := testing.AllocsPerRun(100, func() { names.Hash(name(padded)); ids.Hash(9) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
