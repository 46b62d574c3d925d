package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

// C74: nil, typed nil, zero, false and empty are values: one load each, and the same
// back from every tier, through every codec.
func TestC74EmptyValues(t *testing.T) {
	emptyValue[*versioned](t, "nil pointer", nil)
	emptyValue(t, "zero pointer", &versioned{})
	emptyValue(t, "zero struct", versioned{})
	emptyValue(t, "empty struct", struct{}{})
	emptyValue(t, "zero", 0)
	emptyValue(t, "false", false)
	emptyValue(t, "empty string", "")
	emptyValue(t, "empty bytes", []byte{})
	emptyValue[[]byte](t, "nil bytes", nil)
	emptyValue[[]int](t, "nil slice", nil)
	emptyValue(t, "empty slice", []int{})
	emptyValue(t, "empty map", map[string]int{})
	emptyValue[map[string]int](t, "nil map", nil)
	emptyValue[any](t, "nil interface", nil)
	emptyValue[error](t, "nil error", nil)
}

func emptyValue[V any](t *testing.T, name string, value V) {
	codecs := []tier.Codec[V]{codec.JSON[V](), codec.MsgPack[V](), codec.Gob[V]()}
	for _, cd := range codecs {
		t.Run(name+" "+cd.Name(), func(t *testing.T) {
			stores := []tier.Store[string, V]{
				lru.New[string, V](10),
				ristretto.New[string, V](ristretto.Options[string, V]{MaxCost: 1 << 20}),
				tier.Encode[string, V](storetest.NewMapBytes(), cd),
			}
			var loads atomic.Int64
			var tiers []tier.Tier[string, V]
			for i, s := range stores {
				tiers = append(tiers, tier.Tier[string, V]{Name: fmt.Sprint("l", i+1), Store: s})
			}
			c := newCache(t, coordinator.Options[string, V]{Tiers: tiers, Load: func(context.Context, string) (V, error) {
				loads.Add(1)
				return value, nil
			}})
			for i := range len(stores) + 1 {
				for range 2 {
					r, err := c.Lookup(ctx, "k")
					if err != nil || !reflect.DeepEqual(r.Value, value) || r.State != coordinator.Fresh {
						t.Fatalf("from %q: got %#v, %v, %v, want %#v", r.Tier, r.Value, r.State, err, value)
					}
				}
				for j := range min(i+1, len(stores)-1) {
					if err := stores[j].Delete(ctx, "k"); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := loads.Load(); got != 1 {
				t.Errorf("loads: got %d, want 1", got)
			}
		})
	}
}

// S3: keys of every kind, and C66: two different keys never meet.
func TestKeysOfEveryKind(t *testing.T) {
	texts := []string{"", " ", "  ", "a b", "\n", "\x00", "\x00\x00", "\xff\xfe", "k", "K", strings.Repeat("x", 250),
		strings.Repeat("x", 251), strings.Repeat("日", 84), strings.Repeat("y", 1024), "a:b", "a::b", "*", "[a]"}
	keysDoNotMeet(t, "string", texts)
	keysDoNotMeet(t, "int", []int{0, 1, -1, math.MaxInt, math.MinInt})
	keysDoNotMeet(t, "float", []float64{0, 1, -1, math.Inf(1), math.SmallestNonzeroFloat64})
	keysDoNotMeet(t, "struct", []structKey{{}, {1, ""}, {0, "1"}, {1, "1"}, {11, ""}, {1, "\x01"}})
	keysDoNotMeet(t, "array", [][2]string{{"", ""}, {"a", "b"}, {"ab", ""}, {"", "ab"}, {"a", "\x01b"}})
	keysDoNotMeet(t, "bool", []bool{true, false})
}

func keysDoNotMeet[K comparable](t *testing.T, name string, keys []K) {
	t.Run(name, func(t *testing.T) {
		l1, l2 := lru.New[K, int](100), ristretto.New[K, int](ristretto.Options[K, int]{MaxCost: 1 << 20, Hash: func(K) uint64 { return 7 }})
		c := newCache(t, coordinator.Options[K, int]{Tiers: []tier.Tier[K, int]{
			{Name: "l1", Store: l1}, {Name: "l2", Store: l2},
			{Name: "l3", Store: tier.Encode[K, int](storetest.NewMapBytes(), codec.JSON[int]())},
		}})
		for i, k := range keys {
			if err := c.Set(ctx, k, i); err != nil {
				t.Fatalf("Set(%v): %v", k, err)
			}
		}
		for _, drop := range []tier.Store[K, int]{nil, l1, l2} {
			for i, k := range keys {
				if drop != nil {
					_ = l1.Delete(ctx, k)
					_ = drop.Delete(ctx, k)
				}
				wantGet(t, c, k, i)
			}
		}
		for i, k := range keys {
			if err := c.Delete(ctx, k); err != nil {
				t.Fatal(err)
			}
			_, err := c.Get(ctx, k)
			wantError(t, "after Delete", err, coordinator.ErrMiss)
			for j := i + 1; j < len(keys); j++ {
				wantGet(t, c, keys[j], j)
			}
		}
	})
}

// A key that does not equal itself is refused, and leaves nothing behind.
func TestKeyThatIsNotItself(t *testing.T) {
	c := newCache(t, coordinator.Options[float64, int]{
		Tiers: []tier.Tier[float64, int]{{Name: "l1", Store: lru.New[float64, int](10)}},
		Load:  func(context.Context, float64) (int, error) { return 1, nil },
	})
	nan := math.NaN()
	_, err := c.Get(ctx, nan)
	wantError(t, "Get", err, tier.ErrBadKey)
	wantError(t, "Set", c.Set(ctx, nan, 1), tier.ErrBadKey)
	wantError(t, "Delete", c.Delete(ctx, nan), tier.ErrBadKey)
	wantError(t, "Expire", c.Expire(ctx, nan), tier.ErrBadKey)
	_, err = c.Peek(ctx, nan)
	wantError(t, "Peek", err, tier.ErrBadKey)
	if got := c.Stats().Keys; got != 0 {
		t.Errorf("keys: got %d", got)
	}
}

// So is an interface that holds what cannot be compared.
func TestKeyThatCannotBeCompared(t *testing.T) {
	c := newCache(t, coordinator.Options[any, int]{
		Tiers: []tier.Tier[any, int]{{Name: "l1", Store: lru.New[any, int](10)}},
		Load:  func(context.Context, any) (int, error) { return 1, nil },
	})
	bad := any([]int{1})
	_, err := c.Get(ctx, bad)
	wantError(t, "Get", err, tier.ErrBadKey)
	wantError(t, "Set", c.Set(ctx, bad, 1), tier.ErrBadKey)
	wantError(t, "Delete", c.Delete(ctx, bad), tier.ErrBadKey)
	_, err = c.Peek(ctx, bad)
	wantError(t, "Peek", err, tier.ErrBadKey)
	wantGet(t, c, any("good"), 1)
}

// New names all that is wrong at once.
func TestNewNamesAllFaults(t *testing.T) {
	_, err := coordinator.New(coordinator.Options[string, int]{
		Name: "products",
		Tiers: []tier.Tier[string, int]{
			{Name: "", Store: storetest.NewMap[string, int]()},
			{Name: "a", Store: nil, TTL: -1},
			{Name: "a", Store: lru.New[string, int](0), Timeout: -1},
			{Name: "b", Store: tier.Encode[string, int](nil, codec.JSON[int]())},
		},
		Limits: coordinator.Limits{Flights: -1, Background: -1, LoadTimeout: -1, Recovery: -1},
	})
	if err == nil {
		t.Fatal("New took it")
	}
	for _, want := range []string{`"products"`, "tier 1 has no name", `both called "a"`, "has no store", "TTL -1ns", "Timeout -1ns",
		"Encode needs", "lifetime TTL is not set", "limit Flights", "limit Background", "limit LoadTimeout", "limit Recovery"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if _, err := coordinator.New(coordinator.Options[string, int]{}); err == nil || errors.Is(err, coordinator.ErrClosed) {
		t.Errorf("New of nothing: got %v", err)
	}
}
