package memtest

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/terracecache/terrace/tier"
)

// Version is a value that says whose it is, and how new.
type Version struct {
	Key int
	N   int64
}

// Resize checks that a store follows a new capacity, also while it is read and written:
// it holds no more once it has settled, loses nothing while there is room, and gives back
// nothing older than what was written last. Where each entry costs 1, Usage may count cost
// instead of entries. Settle waits until the last writes count in Usage; nil: they do at
// once.
func Resize(t *testing.T, newStore New[int, Version], settle func(Store[int, Version])) {
	if settle == nil {
		settle = func(Store[int, Version]) {}
	}
	bound := func(t *testing.T, s Store[int, Version], capacity int64) {
		t.Helper()
		settle(s)
		u := s.Usage()
		most, held := u.MaxEntries, u.Entries
		if most < 0 {
			most, held = u.MaxCost, max(u.Cost, u.Entries)
		}
		if most != capacity || held > capacity {
			t.Fatalf("after Resize(%d): %+v", capacity, u)
		}
	}
	resize := func(t *testing.T, s Store[int, Version], capacity int64) {
		t.Helper()
		r, ok := tier.AsResizer(s)
		if !ok {
			t.Fatal("no Resizer")
		}
		if err := r.Resize(capacity); err != nil {
			t.Fatalf("Resize(%d): %v", capacity, err)
		}
	}
	fill := func(t *testing.T, s Store[int, Version], from, n int) {
		t.Helper()
		for key := from; key < from+n; key++ {
			MustSet(t, s, key, Version{key, 1})
		}
		settle(s)
	}
	found := func(t *testing.T, s Store[int, Version], from, n int) (held int) {
		t.Helper()
		for key := from; key < from+n; key++ {
			if Has(t, s, key) {
				held++
			}
		}
		return held
	}

	t.Run("steps", func(t *testing.T) {
		s := newStore(Size{Capacity: 500, Shards: 4})
		defer s.Close()
		for _, capacity := range []int64{0, -1, math.MinInt64} {
			r, _ := tier.AsResizer(s)
			if err := r.Resize(capacity); err == nil || errors.Is(err, tier.ErrNotResizable) || errors.Is(err, tier.ErrClosed) {
				t.Errorf("Resize(%d): error %v, want one of its own", capacity, err)
			}
			bound(t, s, 500)
		}
		resize(t, s, 10_000)
		fill(t, s, 0, 1000)
		bound(t, s, 10_000)
		if got := found(t, s, 0, 1000); got != 1000 {
			t.Errorf("%d of 1000 entries are held in a store that has grown to 10,000", got)
		}
		resize(t, s, 2000)
		bound(t, s, 2000)
		if got := found(t, s, 0, 1000); got != 1000 {
			t.Errorf("%d of 1000 entries are left in a store that has shrunk to 2000", got)
		}
		evicted := s.Usage().Evictions
		resize(t, s, 100)
		bound(t, s, 100)
		u := s.Usage()
		if left := found(t, s, 0, 1000); left > 100 || left < 50 || int64(left) != u.Entries {
			t.Errorf("%d entries are left in a store that has shrunk to 100: %+v", left, u)
		}
		if got := u.Evictions - evicted + u.Entries + max(0, u.Rejections); got != 1000 {
			t.Errorf("%+v: evicted and held are %d, want 1000", u, got)
		}
		fill(t, s, 1000, 1000)
		bound(t, s, 100)
		resize(t, s, 20_000)
		fill(t, s, 5000, 2000)
		if got := found(t, s, 5000, 2000); got != 2000 {
			t.Errorf("%d of 2000 entries are held in a store that has grown again", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if r, ok := tier.AsResizer(s); !ok {
			t.Error("no Resizer after Close")
		} else if err := r.Resize(10); !errors.Is(err, tier.ErrClosed) {
			t.Errorf("Resize after Close: %v, want tier.ErrClosed", err)
		}
	})

	t.Run("to the greatest and back", func(t *testing.T) {
		s := newStore(Size{Capacity: 100, Shards: 1})
		defer s.Close()
		fill(t, s, 0, 1000)
		resize(t, s, math.MaxInt64)
		fill(t, s, 1000, 5000)
		if got := found(t, s, 1000, 5000); got != 5000 {
			t.Errorf("%d of 5000 entries are held", got)
		}
		for _, capacity := range []int64{3000, 11, 2, 1, 9, 10, 700} {
			resize(t, s, capacity)
			bound(t, s, capacity)
			fill(t, s, 10_000, 2000)
			bound(t, s, capacity)
		}
	})

	t.Run("under load", func(t *testing.T) {
		const keys, writers = 3000, 2
		s := newStore(Size{Capacity: 100, Shards: 4})
		defer s.Close()
		floors := make([]atomic.Int64, keys)
		var working sync.WaitGroup
		var stop atomic.Bool
		for w := range writers {
			working.Go(func() {
				rnd := rand.New(rand.NewPCG(1, uint64(w)))
				for n := int64(1); !stop.Load(); n++ {
					key := rnd.IntN(keys/writers)*writers + w
					var err error
					if rnd.IntN(5) == 0 {
						err = s.Delete(ctx, key)
					} else {
						err = s.Set(ctx, key, endless(Version{key, n}), tier.Forever)
					}
					if err != nil {
						t.Error(err)
						return
					}
					floors[key].Store(n)
				}
			})
			working.Go(func() {
				rnd := rand.New(rand.NewPCG(2, uint64(w)))
				for !stop.Load() {
					key := rnd.IntN(keys)
					floor := floors[key].Load()
					e, err := s.Get(ctx, key)
					if err != nil {
						t.Error(err)
						return
					}
					if e != nil && (e.Value().Key != key || e.Value().N < floor) {
						t.Errorf("key %d: got %+v after version %d was written", key, e.Value(), floor)
						return
					}
				}
			})
		}
		rnd := rand.New(rand.NewPCG(3, 3))
		for range 100 {
			resize(t, s, int64(4+rnd.IntN(4000)))
			s.Usage()
		}
		resize(t, s, 64)
		stop.Store(true)
		working.Wait()
		bound(t, s, 64)
		resize(t, s, 100_000)
		fill(t, s, keys, 2000)
		if got := found(t, s, keys, 2000); got != 2000 {
			t.Errorf("%d of 2000 entries are held with room for all", got)
		}
		for key := range floors {
			if e, _ := s.Get(ctx, key); e != nil && e.Value() != (Version{key, floors[key].Load()}) {
				t.Errorf("key %d: at rest %+v, last write was %d", key, e.Value(), floors[key].Load())
			}
		}
	})
}
