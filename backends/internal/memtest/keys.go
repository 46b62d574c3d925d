package memtest

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Point is a key that is a struct.
type Point struct {
	X, Y int
	Name string
}

// GetDoesNotAllocate checks that neither a hit nor a miss allocates anything for
// the key. K should be each of string, int, [Point] and an array.
func GetDoesNotAllocate[K comparable](t *testing.T, newStore New[K, int], key, missing K) {
	t.Helper()
	s := newStore(Size{Capacity: 10_000, Shards: 4})
	MustSet(t, s, key, 1)
	Has(t, s, key) // a first hit may move something
	if n := testing.AllocsPerRun(200, func() {
		if entry, err := s.Get(ctx, key); entry == nil || err != nil {
			t.Fatal(entry, err)
		}
		if entry, err := s.Get(ctx, missing); entry != nil || err != nil {
			t.Fatal(entry, err)
		}
	}); n != 0 {
		t.Errorf("Get of a %T allocates %v times", key, n)
	}
}

// NaN checks that a key that does not equal itself is refused: it could be added
// without end and never found.
func NaN(t *testing.T, newStore New[[1]float64, int]) {
	s := newStore(Size{Capacity: 10})
	for range 100 {
		if err := s.Set(ctx, [1]float64{math.NaN()}, endless(1), time.Hour); !errors.Is(err, tier.ErrBadKey) {
			t.Fatalf("Set of NaN: got error %v, want tier.ErrBadKey", err)
		}
	}
	if Has(t, s, [1]float64{math.NaN()}) {
		t.Error("NaN is held")
	}
	if err := s.Delete(ctx, [1]float64{math.NaN()}); err != nil {
		t.Errorf("Delete of NaN: %v", err)
	}
	if got := s.Usage().Entries; got != 0 {
		t.Errorf("holds %d entries, want none", got)
	}
	MustSet(t, s, [1]float64{0}, 1)
	if !Has(t, s, [1]float64{math.Copysign(0, -1)}) {
		t.Error("0 and -0 are equal, but not one key")
	}
}

// IncomparableKey checks that a key that panics when compared, which an interface
// can hold though it satisfies comparable, is refused.
func IncomparableKey(t *testing.T, newStore New[any, int]) {
	s := newStore(Size{Capacity: 10, Shards: 2})
	bad := any([]int{1})
	_, getErr := s.Get(ctx, bad)
	for method, got := range map[string]error{
		"Get":    getErr,
		"Set":    s.Set(ctx, bad, endless(1), time.Hour),
		"Delete": s.Delete(ctx, bad),
	} {
		if !errors.Is(got, tier.ErrBadKey) {
			t.Errorf("%s: got error %v, want tier.ErrBadKey", method, got)
		}
	}
	for _, good := range []any{nil, 1, "1", Point{X: 1}} {
		MustSet(t, s, good, 1)
		if !Has(t, s, good) {
			t.Errorf("%#v is not held", good)
		}
	}
}
