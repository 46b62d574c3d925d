package storetest

import (
	"context"
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

// withPairs runs the check of a store once more by its methods for pairs, if it has any.
func withPairs[V any](c check[storeSuite[V]]) check[storeSuite[V]] {
	return check[storeSuite[V]]{c.name, func(t testing.TB, s storeSuite[V]) {
		c.run(t, s)
		if _, ok := tier.AsPairStore(s.open(t)); !ok {
			return
		}
		opened := s.newStore
		s.newStore = func(t testing.TB) tier.Store[string, V] {
			st := opened(t)
			pairs, _ := tier.AsPairStore(st)
			return byPairs[V]{st, pairs}
		}
		c.run(t, s)
	}}
}

// storePairs checks that a pair is kept as it is where its life allows, and else with its key.
func storePairs[V any](t testing.TB, s storeSuite[V]) {
	ctx, st := context.Background(), s.open(t)
	pairs, ok := tier.AsPairStore(st)
	if !ok {
		return
	}
	if got := pairs.Itself(); got != st {
		t.Errorf("Itself is %p, want the store %p", got, st)
	}
	for n, key := range keys[:10] {
		for _, ttl := range []time.Duration{tier.Forever, life / 2} {
			pair := tier.PairOf(key, s.entry(key, int64(n)))
			if err := pairs.SetPair(ctx, pair, ttl); err != nil {
				t.Fatalf("SetPair(%s): %v", brief(key), err)
			}
			got, err := pairs.GetPair(ctx, key)
			if got == nil || err != nil {
				t.Fatalf("GetPair(%s) after SetPair: %v, %v", brief(key), got, err)
			}
			if got.Key() != key {
				t.Errorf("GetPair(%s) gives a pair of %s", brief(key), brief(got.Key()))
			}
			if ttl == tier.Forever && got != pair {
				t.Errorf("GetPair(%s) gives %p, want what was set, %p", brief(key), got, pair)
			}
			if e, err := st.Get(ctx, key); e != got.Entry() || err != nil {
				t.Errorf("Get(%s) gives %p, %v, want the entry of the pair, %p", brief(key), e, err, got.Entry())
			}
			if k, m := identity(t, got.Entry()); k != key || m != int64(n) {
				t.Errorf("GetPair(%s) gives entry %d of %s, want %d", brief(key), m, brief(k), n)
			}
		}
	}
}
