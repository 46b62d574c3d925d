package memtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Capacity checks, for many sizes and more of the caller's, that the store never holds
// more than its capacity, whatever the access, and that all that is gone was either
// removed or counted as evicted.
func Capacity(t *testing.T, newStore New[int, int], more ...Size) {
	sizes := append([]Size{
		{1, 0}, {2, 0}, {3, 0}, {7, 2}, {5, 4}, {4, 4}, {100, 0}, {1000, 0}, {5000, 0},
	}, more...)
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) { capacity(t, size, newStore(size)) })
	}
}

func capacity(t *testing.T, size Size, s Store[int, int]) {
	rnd := rand.New(rand.NewPCG(1, uint64(size.Capacity)))
	var added, removed int64
	for range 20_000 {
		key := rnd.IntN(2*size.Capacity + 2)
		was := s.Usage().Entries
		switch rnd.IntN(10) {
		case 0:
			if err := s.Delete(ctx, key); err != nil {
				t.Fatal(err)
			}
			removed += was - s.Usage().Entries
		case 1, 2, 3, 4:
			Has(t, s, key)
		default:
			if !Has(t, s, key) {
				added++
			}
			MustSet(t, s, key, key)
		}
		u := s.Usage()
		if u.Entries > int64(size.Capacity) || u.MaxEntries != int64(size.Capacity) {
			t.Fatalf("holds %d of %d entries, capacity %d", u.Entries, u.MaxEntries, size.Capacity)
		}
		if got, want := u.Evictions, added-removed-u.Entries; got != want {
			t.Fatalf("Evictions = %d, want %d: holds %d after %d added and %d removed", got, want, u.Entries, added, removed)
		}
	}
	evicted := s.Usage().Evictions
	if err := s.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Entries != 0 || u.Evictions != evicted {
		t.Errorf("after Clear: %+v, want no entries and still %d evictions", u, evicted)
	}
}

// FillsItsCapacity checks that no part of the capacity is left unused.
func FillsItsCapacity(t *testing.T, newStore New[int, int], more ...Size) {
	sizes := append([]Size{{1, 0}, {2, 0}, {3, 2}, {10, 0}, {255, 0}, {4, 4}, {3000, 0}}, more...)
	for _, size := range sizes {
		s := newStore(size)
		for i := range 50 * size.Capacity {
			MustSet(t, s, i, i)
		}
		if got, want := s.Usage().Entries, int64(size.Capacity); got != want {
			t.Errorf("%+v: holds %d entries after many writes, want %d", size, got, want)
		}
	}
}

// HugeCapacity checks that the greatest capacity that can be written takes no memory
// for what does not come, and overflows nowhere.
func HugeCapacity(t *testing.T, newStore New[int, int]) {
	for _, size := range []Size{{math.MaxInt, 0}, {math.MaxInt, 1}, {math.MaxInt - 1, 4}} {
		const n = 20_000
		s := newStore(size)
		for i := range n {
			MustSet(t, s, i, i)
		}
		for i := range n {
			if !Has(t, s, i) {
				t.Fatalf("%+v: key %d is lost", size, i)
			}
		}
		if u := s.Usage(); u.Entries != n || u.Evictions != 0 || u.MaxEntries != int64(size.Capacity) {
			t.Errorf("%+v: %+v, want %d entries and no eviction", size, u, n)
		}
	}
}
