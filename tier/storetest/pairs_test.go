package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
)

// pairMap is a [Map] that keeps pairs, with its methods for pairs replaced where it is to be
// broken.
type pairMap struct {
	*Map[string, string]
	pairs   *Map[string, *tier.Pair[string, string]]
	getPair func(ctx context.Context, key string) (*tier.Pair[string, string], error)
	setPair func(ctx context.Context, pair *tier.Pair[string, string], ttl time.Duration) error

	uncleared bool // Clear does nothing
}

func newPairMap() *pairMap {
	m := &pairMap{Map: NewMap[string, string](), pairs: NewMap[string, *tier.Pair[string, string]]()}
	m.getPair, m.setPair = m.rightGet, m.rightSet
	return m
}

func (m *pairMap) rightGet(ctx context.Context, key string) (*tier.Pair[string, string], error) {
	e, err := m.pairs.Get(ctx, key)
	if e == nil {
		return nil, err
	}
	return e.Value(), nil
}

func (m *pairMap) rightSet(ctx context.Context, pair *tier.Pair[string, string], ttl time.Duration) error {
	if ttl <= 0 {
		return m.pairs.Delete(ctx, pair.Key())
	}
	pair = pair.Capped(tier.Now().Add(ttl))
	return m.pairs.Set(ctx, pair.Key(), tier.NewEntry(pair, tier.Meta{UsableUntil: pair.Entry().UsableUntil()}), ttl)
}

func (m *pairMap) Get(ctx context.Context, key string) (*tier.Entry[string], error) {
	pair, err := m.rightGet(ctx, key)
	return pair.Entry(), err
}

func (m *pairMap) Set(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
	return m.rightSet(ctx, tier.PairOf(key, e), ttl)
}

func (m *pairMap) Delete(ctx context.Context, key string) error { return m.pairs.Delete(ctx, key) }
func (m *pairMap) Clear(ctx context.Context) error {
	if m.uncleared {
		return nil
	}
	return m.pairs.Clear(ctx)
}
func (m *pairMap) Usage() tier.Usage                  { return m.pairs.Usage() }
func (m *pairMap) Close() error                       { return m.pairs.Close() }
func (m *pairMap) Itself() tier.Store[string, string] { return m }

func (m *pairMap) GetPair(ctx context.Context, key string) (*tier.Pair[string, string], error) {
	return m.getPair(ctx, key)
}

func (m *pairMap) SetPair(ctx context.Context, pair *tier.Pair[string, string], ttl time.Duration) error {
	return m.setPair(ctx, pair, ttl)
}

func pairSuite(breaks func(m *pairMap)) storeSuite[string] {
	return newStoreSuite(func(testing.TB) tier.Store[string, string] {
		m := newPairMap()
		breaks(m)
		return m
	}, StoreOptions[string]{Values: []string{"", "value", "\xff"}})
}

func TestStoreSuiteFindsFaultsOfPairs(t *testing.T) {
	for _, c := range []struct {
		fault, check string
		breaks       func(m *pairMap)
	}{
		{"SetPair keeps nothing", "nothing is nil", func(m *pairMap) {
			m.setPair = func(context.Context, *tier.Pair[string, string], time.Duration) error { return nil }
		}},
		{"SetPair knows no ttl", "ttl bounds the life", func(m *pairMap) {
			m.setPair = func(ctx context.Context, pair *tier.Pair[string, string], _ time.Duration) error {
				return m.rightSet(ctx, pair, tier.Forever)
			}
		}},
		{"SetPair keeps what has no ttl", "ttl of zero and less", func(m *pairMap) {
			m.setPair = func(ctx context.Context, pair *tier.Pair[string, string], ttl time.Duration) error {
				return m.rightSet(ctx, pair, max(ttl, time.Hour))
			}
		}},
		{"GetPair gives pairs of another key", "keys of every kind", func(m *pairMap) {
			m.getPair = func(ctx context.Context, key string) (*tier.Pair[string, string], error) {
				pair, err := m.rightGet(ctx, key)
				if pair != nil {
					pair = tier.PairOf("another", pair.Entry())
				}
				return pair, err
			}
		}},
		{"pairs are copied", "pairs", func(m *pairMap) {
			m.setPair = func(ctx context.Context, pair *tier.Pair[string, string], ttl time.Duration) error {
				return m.rightSet(ctx, tier.PairOf(pair.Key(), pair.Entry()), ttl)
			}
		}},
		{"Clear leaves pairs", "clear", func(m *pairMap) {
			m.setPair = func(ctx context.Context, pair *tier.Pair[string, string], ttl time.Duration) error {
				m.uncleared = true
				return m.rightSet(ctx, pair, ttl)
			}
		}},
		{"GetPair outlives Close", "after Close", func(m *pairMap) {
			m.getPair = func(ctx context.Context, key string) (*tier.Pair[string, string], error) {
				pair, _ := m.rightGet(ctx, key)
				return pair, nil
			}
		}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			s := pairSuite(c.breaks)
			wantFailure(t, s, s.checks(), c.check)
		})
	}
	s := pairSuite(func(*pairMap) {})
	if failed := failures(t, s, s.checks()); len(failed) > 0 {
		t.Errorf("checks of a store that is right fail: %v", failed)
	}
}
