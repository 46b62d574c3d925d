package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// encodedChecks check a byte store behind tier.Encode for what TestStore does not.
var encodedChecks = []check[bytesSuite]{
	{"nil, zero and empty", encodedValues},
	{"unreadable bytes", encodedUnreadable},
	{"one unreadable key in a batch", encodedUnreadableBatch},
}

// encoded returns what makes the suite's stores into stores of strings.
func (s bytesSuite) encoded(c tier.Codec[string]) func(t testing.TB) tier.Store[string, string] {
	return func(t testing.TB) tier.Store[string, string] { return tier.Encode[string](s.newBytes(t), c) }
}

func (s bytesSuite) encodedOptions() StoreOptions[string] {
	o := StoreOptions[string]{Values: []string{"", "value", "\x00\xff"}, Sleep: s.Sleep, Virtual: s.Virtual}
	if s.TooLarge > 0 {
		large := strings.Repeat("x", s.TooLarge)
		o.TooLarge = &large
	}
	return o
}

type product struct {
	ID   int
	Name string
}

// encodedValues is C74: nil, zero and empty come back as what they were.
func encodedValues(t testing.TB, s bytesSuite) {
	each(t, s, nil, &product{}, &product{ID: 1})
	each(t, s, product{}, product{ID: 1, Name: "x"})
	each(t, s, 0, 1, -1)
	each(t, s, false, true)
	each(t, s, "", "x")
	each(t, s, nil, []byte{}, []byte{0})
	each(t, s, nil, []string{}, []string{""})
	each(t, s, nil, map[string]int{}, map[string]int{"": 0})
	each(t, s, struct{}{})
	each(t, s, [2]int{}, [2]int{1, 2})
}

// each checks that the values come back by each codec.
func each[V any](t testing.TB, s bytesSuite, values ...V) {
	t.Helper()
	for _, c := range []tier.Codec[V]{codec.JSON[V](), codec.MsgPack[V](), codec.Gob[V]()} {
		storeValues(t, newStoreSuite(func(t testing.TB) tier.Store[string, V] {
			return tier.Encode[string](s.newBytes(t), c)
		}, StoreOptions[V]{Values: values}))
	}
}

// unreadable returns bytes that are no entry of the key (C57), made from those that
// are one.
func unreadable(t testing.TB, s bytesSuite, good []byte) map[string][]byte {
	t.Helper()
	bad := map[string][]byte{
		"empty":         {},
		"one byte":      good[:1],
		"random":        []byte("\x93\x1f\xa0\x7b\x00\xee\x51\x0c\x84\x2d\x99\xb6\x3f\x10\xd5\x6a"),
		"long":          bytes.Repeat([]byte{0xc7}, 4096),
		"json":          []byte(`{"ID":1,"Name":"x"}`),
		"gzip header":   []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"),
		"a byte more":   append(slices.Clone(good), 0),
		"twice":         append(slices.Clone(good), good...),
		"version":       slices.Concat(good[:1], []byte{good[1] + 1}, good[2:]),
		"another key's": encodedAs(t, s, codec.JSON[product](), product{ID: 1}, "another key"),
		"another type":  encodedAs(t, s, codec.JSON[struct{ Other int }](), struct{ Other int }{1}, "key"),
		"another codec": encodedAs(t, s, codec.MsgPack[product](), product{ID: 1}, "key"),
		"a nil":         encodedAs[*product](t, s, codec.JSON[*product](), nil, "key"),
		"a string":      encodedAs(t, s, codec.JSON[string](), "x", "key"),
	}
	for _, n := range []int{2, tier.HeadSize, len(good) / 2, len(good) - 1} {
		bad[fmt.Sprint("first ", n)] = good[:n]
	}
	for i := range good {
		flipped := slices.Clone(good)
		flipped[i] ^= 1 << (i % 8)
		bad[fmt.Sprint("bit flipped in byte ", i)] = flipped
	}
	return bad
}

// encodedAs returns the bytes of the value under the key.
func encodedAs[V any](t testing.TB, s bytesSuite, c tier.Codec[V], value V, key string) []byte {
	t.Helper()
	b := s.open(t)
	now := tier.Now()
	e := tier.NewEntry(value, tier.Meta{LoadedAt: now, FreshUntil: now.Add(life), UsableUntil: now.Add(life), Tags: []string{"tag"}})
	if err := tier.Encode[string](b, c).Set(context.Background(), key, e, tier.Forever); err != nil {
		t.Fatalf("Set: %v", err)
	}
	return mustGet(t, b, key)
}

func encodedUnreadable(t testing.TB, s bytesSuite) {
	ctx, b := context.Background(), s.open(t)
	st := tier.Encode[string](b, codec.JSON[product]())
	good := encodedAs(t, s, codec.JSON[product](), product{ID: 1}, "key")
	now := tier.Now()
	e := tier.NewEntry(product{ID: 2}, tier.Meta{LoadedAt: now, FreshUntil: now.Add(life), UsableUntil: now.Add(life)})
	for name, bad := range unreadable(t, s, good) {
		mustSet(t, b, "key", string(bad), tier.Forever)
		got, err := st.Get(ctx, "key")
		if got != nil || !errors.Is(err, tier.ErrUnreadable) {
			t.Errorf("%s: Get = %v, %v, want tier.ErrUnreadable", name, got, err)
		}
		if swap, ok := tier.AsSwapper[string, product](st); ok {
			_, version, err := swap.GetVersion(ctx, "key")
			if !errors.Is(err, tier.ErrUnreadable) {
				t.Errorf("%s: GetVersion gives error %v, want tier.ErrUnreadable", name, err)
			}
			if stored, err := swap.SetIf(ctx, "key", e, tier.Forever, version); !stored || err != nil {
				t.Errorf("%s: SetIf over it = %v, %v, want true", name, stored, err)
			}
		} else if err := st.Set(ctx, "key", e, tier.Forever); err != nil {
			t.Errorf("%s: Set over it: %v", name, err)
		}
		if got, err := st.Get(ctx, "key"); err != nil || got == nil || got.Value() != e.Value() {
			t.Errorf("%s: Get after it was overwritten = %v, %v", name, got, err)
		}
	}
}

func encodedUnreadableBatch(t testing.TB, s bytesSuite) {
	ctx, b := context.Background(), s.open(t)
	st := tier.Encode[string](b, codec.JSON[product]())
	batch, ok := tier.AsBatcher[string, product](st)
	if !ok {
		return
	}
	now := tier.Now()
	e := tier.NewEntry(product{ID: 2}, tier.Meta{LoadedAt: now, FreshUntil: now.Add(life), UsableUntil: now.Add(life)})
	if err := batch.SetMany(ctx, []string{"a", "b"}, []*tier.Entry[product]{e, e}, []time.Duration{tier.Forever, tier.Forever}); err != nil {
		t.Fatalf("SetMany: %v", err)
	}
	mustSet(t, b, "bad", "\x00", tier.Forever)
	got, err := batch.GetMany(ctx, []string{"a", "bad", "b"})
	if err != nil || len(got) != 3 || got[0] == nil || got[1] != nil || got[2] == nil {
		t.Errorf("GetMany with one unreadable key = %v, %v, want the other two", got, err)
	}
}
