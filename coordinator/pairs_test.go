package coordinator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

// folding takes texts that differ in case for one key, and keeps pairs under the lower one.
type folding struct {
	*sieve.Store[string, int]
}

func (f *folding) GetPair(ctx context.Context, key string) (*tier.Pair[string, int], error) {
	return f.Store.GetPair(ctx, strings.ToLower(key))
}

func (f *folding) SetPair(ctx context.Context, pair *tier.Pair[string, int], ttl time.Duration) error {
	return f.Store.SetPair(ctx, tier.PairOf(strings.ToLower(pair.Key()), pair.Entry()), ttl)
}

func (f *folding) Itself() tier.Store[string, int] { return f }

// What a store has under another key's pair is not carried up to that other key, whose turn
// nobody has.
func TestPairOfAnotherKeyIsNotCarriedUp(t *testing.T) {
	l1 := sieve.New[string, int](10)
	c := newCache(t, coordinator.Options[string, int]{
		Tiers: []tier.Tier[string, int]{{Name: "l1", Store: l1}, {Name: "l2", Store: &folding{sieve.New[string, int](10)}}},
		Load:  func(context.Context, string) (int, error) { return 7, nil },
	})
	if _, err := c.Get(ctx, "foo"); err != nil {
		t.Fatal(err)
	}
	if err := l1.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Get(ctx, "FOO"); v != 7 || err != nil {
		t.Fatal(v, err)
	}
	for key, want := range map[string]bool{"FOO": true, "foo": false} {
		if e, err := l1.Get(ctx, key); (e != nil) != want || err != nil {
			t.Errorf("l1 holds %s: %v, %v, want %v", key, e != nil, err, want)
		}
	}
}

// pairless says that it keeps pairs, and fails the test when it is asked for one.
type pairless struct {
	tier.Store[string, int]
	t *testing.T
}

func (p *pairless) GetPair(context.Context, string) (*tier.Pair[string, int], error) {
	p.t.Error("GetPair is called")
	return nil, nil
}

func (p *pairless) SetPair(context.Context, *tier.Pair[string, int], time.Duration) error {
	p.t.Error("SetPair is called")
	return nil
}

func (p *pairless) Itself() tier.Store[string, int] { return p }

// Punctual implements [tier.Punctual], so that the cache asks the store itself.
func (p *pairless) Punctual() bool { return true }

// swapping has versions besides.
type swapping struct {
	*pairless
	tier.Swapper[string, int]
}

func (s swapping) Itself() tier.Store[string, int] { return s }
func (s swapping) Local() bool                     { return true }

// A store that is asked within a time limit, or by versions, is asked for no pairs.
func TestPairsAreForStoresInMemoryWithoutVersions(t *testing.T) {
	encoded := tier.Encode[string](storetest.NewMapBytes(), codec.JSON[int]())
	for name, store := range map[string]tier.Store[string, int]{
		"shared":   &pairless{sieve.New[string, int](10), t},
		"versions": swapping{&pairless{encoded, t}, encoded},
	} {
		if _, ok := tier.AsPairStore(store); !ok {
			t.Fatalf("%s: the store does not say that it keeps pairs", name)
		}
		c := newCache(t, coordinator.Options[string, int]{
			Tiers: []tier.Tier[string, int]{{Name: "l1", Store: sieve.New[string, int](10)}, {Name: "l2", Store: store}},
			Load:  func(context.Context, string) (int, error) { return 7, nil },
		})
		for range 2 {
			if v, err := c.Get(ctx, "key"); v != 7 || err != nil {
				t.Errorf("%s: Get: %v, %v", name, v, err)
			}
		}
		if err := c.Set(ctx, "key", 8); err != nil {
			t.Errorf("%s: Set: %v", name, err)
		}
		if err := c.Delete(ctx, "key"); err != nil {
			t.Errorf("%s: Delete: %v", name, err)
		}
	}
}
