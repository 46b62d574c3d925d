package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
)

// byPairs is a store that is written and read by its methods for pairs, so that all checks
// of a store can be made of these too.
type byPairs[V any] struct {
	tier.Store[string, V]
	pairs tier.PairStore[string, V]
}

func (s byPairs[V]) Get(ctx context.Context, key string) (*tier.Entry[V], error) {
	pair, err := s.pairs.GetPair(ctx, key)
	if pair != nil && pair.Key() != key {
		return tier.NewEntry(pair.Entry().Value(), tier.Meta{Validator: "0 of another key"}), err
	}
	return pair.Entry(), err
}

func (s byPairs[V]) Set(ctx context.Context, key string, entry *tier.Entry[V], ttl time.Duration) error {
	if entry == nil {
		return s.Delete(ctx, key)
	}
	return s.pairs.SetPair(ctx, tier.PairOf(key, entry), ttl)
}

// Can implements [tier.Partial].
func (s byPairs[V]) Can(c tier.Capability) (ok bool) {
	switch c {
	case tier.CanClear:
		_, ok = tier.AsClearer(s.Store)
	case tier.CanMeasure:
		_, ok = tier.AsMeasurer(s.Store)
	default:
	}
	return ok
}

// Clear implements [tier.Clearer].
func (s byPairs[V]) Clear(ctx context.Context) error {
	c, ok := tier.AsClearer(s.Store)
	if !ok {
		return errors.ErrUnsupported
	}
	return c.Clear(ctx)
}

// Usage implements [tier.Measurer].
func (s byPairs[V]) Usage() tier.Usage { return usage(s.Store) }

// Local implements [tier.Local].
func (s byPairs[V]) Local() bool { return tier.IsLocal(s.Store) }

// withPairs runs the check of a store once more by its methods for pairs, if it has any.
func withPairs[V any](c check[storeSuite[V]]) check[storeSuite[V]] {
	return check[storeSuite[V]]{c.name, func(t testing.TB, s storeSuite[V]) {
		opened, keepsPairs := s.newStore, false
		s.newStore = func(t testing.TB) tier.Store[string, V] {
			st := opened(t)
			_, ok := tier.AsPairStore(st)
			keepsPairs = keepsPairs || ok
			return st
		}
		c.run(t, s)
		if !keepsPairs {
			return
		}
		s.newStore = func(t testing.TB) tier.Store[string, V] {
			st := opened(t)
			pairs, _ := tier.AsPairStore(st)
			return byPairs[V]{st, pairs}
		}
		c.run(t, s)
	}}
}

// keptPair sets the pair and reads it back, and its entry, as [storeSuite.kept] does.
func keptPair[V any](t testing.TB, st tier.PairStore[string, V], pair *tier.Pair[string, V], ttl time.Duration) (*tier.Pair[string, V], *tier.Entry[V]) {
	t.Helper()
	ctx, key := context.Background(), pair.Key()
	for range 20 {
		if err := st.SetPair(ctx, pair, ttl); err != nil {
			t.Fatalf("SetPair(%s): %v", brief(key), err)
		}
		got, err := st.GetPair(ctx, key)
		if err != nil {
			t.Fatalf("GetPair(%s): %v", brief(key), err)
		}
		e, err := st.Get(ctx, key)
		if err != nil {
			t.Fatalf("Get(%s): %v", brief(key), err)
		}
		if got != nil && e != nil {
			return got, e
		}
	}
	t.Fatalf("GetPair and Get(%s) do not both find it right after any of 20 SetPairs with ttl %v", brief(key), ttl)
	return nil, nil
}

// storePairs checks that a pair is kept as it is where its life allows, and else with its key.
func storePairs[V any](t testing.TB, s storeSuite[V]) {
	st, ok := tier.AsPairStore(s.open(t))
	if !ok {
		return
	}
	for n, key := range keys[:10] {
		for _, ttl := range []time.Duration{tier.Forever, life / 2} {
			pair := tier.PairOf(key, s.entry(key, int64(n)))
			got, e := keptPair(t, st, pair, ttl)
			if got.Key() != key {
				t.Errorf("GetPair(%s) gives a pair of %s", brief(key), brief(got.Key()))
			}
			if ttl == tier.Forever && got != pair {
				t.Errorf("GetPair(%s) gives %p, want what was set, %p", brief(key), got, pair)
			}
			if e != got.Entry() {
				t.Errorf("Get(%s) gives %p, want the entry of the pair, %p", brief(key), e, got.Entry())
			}
			if k, m := identity(t, got.Entry()); k != key || m != int64(n) {
				t.Errorf("GetPair(%s) gives entry %d of %s, want %d", brief(key), m, brief(k), n)
			}
		}
	}
}
