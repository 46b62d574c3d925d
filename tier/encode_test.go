package tier_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

var ctx = context.Background()

func entry[V any](value V) *tier.Entry[V] {
	now := tier.Now()
	return tier.NewEntry(value, tier.Meta{LoadedAt: now, FreshUntil: now.Add(time.Minute), UsableUntil: now.Add(time.Hour)})
}

func mustSet[K comparable, V any](t *testing.T, s tier.Store[K, V], key K, value V) {
	t.Helper()
	if err := s.Set(ctx, key, entry(value), tier.Forever); err != nil {
		t.Fatalf("Set(%v): %v", key, err)
	}
}

// TestC57AnotherType: what one type wrote is never read as another, though the
// codec would make a plausible zero value of it.
func TestC57AnotherType(t *testing.T) {
	type written struct{ X int }
	type read struct{ Y int }
	b := storetest.NewMapBytes()
	mustSet(t, tier.Encode[string](b, codec.JSON[written]()), "key", written{1})
	cannotRead(t, tier.Encode[string](b, codec.JSON[read]()), "schema")
	cannotRead(t, tier.Encode[string](b, codec.JSON[*written]()), "schema")
	cannotRead(t, tier.Encode[string](b, codec.JSON[int]()), "schema")
	cannotRead(t, tier.Encode[string](b, codec.MsgPack[written]()), "schema")
	cannotRead(t, tier.EncodeWith(b, codec.JSON[written](), tier.EncodeOptions[string]{Schema: "v2"}), "schema")

	// Under one schema the codec's errors and nil are noticed.
	same := tier.EncodeOptions[string]{Schema: "products"}
	mustSet(t, tier.EncodeWith(b, codec.JSON[string](), same), "key", "text")
	cannotRead(t, tier.EncodeWith(b, codec.JSON[written](), same), "decode")
	mustSet(t, tier.EncodeWith(b, codec.JSON[*written](), same), "key", nil)
	cannotRead(t, tier.EncodeWith(b, codec.JSON[written](), same), "type")
	cannotRead(t, tier.EncodeWith(b, panicking[string]{}, same), "type")
	mustSet(t, tier.EncodeWith(b, codec.JSON[string](), same), "key", "text")
	cannotRead(t, tier.EncodeWith(b, panicking[string]{}, same), "decode")
}

func cannotRead[V any](t *testing.T, s tier.Store[string, V], reason string) {
	t.Helper()
	e, err := s.Get(ctx, "key")
	var u *tier.UnreadableError
	if e != nil || !errors.As(err, &u) || !errors.Is(err, tier.ErrUnreadable) || u.Reason != reason {
		t.Errorf("%T: Get = %v, %v, want it unreadable for its %s", s, e, err, reason)
	}
}

// panicking is a codec that does.
type panicking[V any] struct{}

func (panicking[V]) Name() string                           { return "panicking" }
func (panicking[V]) Append(dst []byte, _ V) ([]byte, error) { panic("append") }
func (panicking[V]) Decode([]byte) (V, error)               { panic("decode") }

// TestC74NilAndEmpty: without the help of a codec, which sees neither nil nor an
// absent entry.
func TestC74NilAndEmpty(t *testing.T) {
	comesBack(t, codec.Raw(), nil, []byte{}, []byte{0})
	comesBack(t, codec.String(), "", "x")
	comesBack(t, codec.JSON[[]int](), nil, []int{}, []int{0})
	comesBack(t, codec.Gob[map[string]int](), nil, map[string]int{}, map[string]int{"": 0})
	comesBack(t, codec.MsgPack[*int](), nil, new(int))
	comesBack[any](t, codec.JSON[any](), nil, "", false, map[string]any{})
	comesBack(t, codec.MsgPack[struct{}](), struct{}{})
}

func comesBack[V any](t *testing.T, c tier.Codec[V], values ...V) {
	t.Helper()
	s := tier.Encode[string](storetest.NewMapBytes(), c)
	for _, want := range values {
		mustSet(t, s, "key", want)
		got, err := s.Get(ctx, "key")
		if err != nil || got == nil || got.Absent() || !reflect.DeepEqual(got.Value(), want) {
			t.Errorf("%s: got %+v, %v, want %#v", c.Name(), got, err, want)
		}
	}
}

// An error or panic of the codec is the caller's, and nothing older is left.
func TestWriteThatFails(t *testing.T) {
	b := storetest.NewMapBytes()
	good := tier.Encode[string](b, codec.JSON[any]())
	for name, bad := range map[string]*tier.Encoded[string, any]{
		"error": good,
		"panic": tier.Encode[string](b, panicking[any]{}),
	} {
		held := func(key string) bool {
			t.Helper()
			v, err := b.Get(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			return v != nil
		}
		mustSet[string, any](t, good, "key", "older")
		if err := bad.Set(ctx, "key", entry[any](make(chan int)), tier.Forever); err == nil || held("key") {
			t.Errorf("%s: Set gives error %v, and the older value is there: %v", name, err, held("key"))
		}
		mustSet[string, any](t, good, "key", "older")
		mustSet[string, any](t, good, "other", "older")
		err := bad.SetMany(ctx, []string{"key", "other"}, []*tier.Entry[any]{entry[any](make(chan int)), entry[any](nil)},
			[]time.Duration{tier.Forever, tier.Forever})
		if err == nil || held("key") || !held("other") {
			t.Errorf("%s: SetMany gives error %v; held %v, %v, want only the other key", name, err, held("key"), held("other"))
		}
		mustSet[string, any](t, good, "key", "older")
		_, version, err := good.GetVersion(ctx, "key")
		if err != nil {
			t.Fatal(err)
		}
		if stored, err := bad.SetIf(ctx, "key", entry[any](make(chan int)), tier.Forever, version); stored || err == nil {
			t.Errorf("%s: SetIf = %v, %v, want an error", name, stored, err)
		}
		if e, err := good.Get(ctx, "key"); e != nil || err != nil {
			t.Errorf("%s: after SetIf: %v, %v, want nothing", name, e, err)
		}
	}
}

func TestKeys(t *testing.T) {
	b := storetest.NewMapBytes()
	wrong := func(err error) bool { return errors.Is(err, tier.ErrBadKey) }

	if err := tier.Encode[*int](b, codec.String()).Validate(); !wrong(err) {
		t.Errorf("keys that are pointers: got error %v, want tier.ErrBadKey", err)
	}
	f := tier.Encode[float64](b, codec.String())
	if err := f.Set(ctx, math.NaN(), entry(""), time.Hour); !wrong(err) {
		t.Errorf("NaN: got error %v, want tier.ErrBadKey", err)
	}
	keyed := func(key func(any) string) *tier.Encoded[any, string] {
		return tier.EncodeWith(b, codec.String(), tier.EncodeOptions[any]{Key: key})
	}
	if _, err := keyed(func(any) string { panic("no") }).Get(ctx, 1); !wrong(err) {
		t.Errorf("a key function that panics: got error %v, want tier.ErrBadKey", err)
	}
	if _, err := keyed(func(k any) string { return fmt.Sprint(k) }).Get(ctx, []int{1}); !wrong(err) {
		t.Errorf("a key that cannot be compared: got error %v, want tier.ErrBadKey", err)
	}
	s := keyed(func(k any) string { return fmt.Sprintf("%T %v", k, k) })
	mustSet[any](t, s, 1, "int")
	mustSet[any](t, s, "1", "string")
	if e, err := s.Get(ctx, 1); err != nil || e.Value() != "int" {
		t.Errorf("got %v, %v", e, err)
	}
}

// partial is a Bytes with methods for all, of which none works.
type partial struct{ *storetest.MapBytes }

func (partial) Can(tier.Capability) bool { return false }

// plain has only what Bytes asks.
type plain struct{ tier.Bytes }

func TestCapabilities(t *testing.T) {
	all := tier.Encode[string](storetest.NewMapBytes(), codec.String())
	for name, s := range map[string]*tier.Encoded[string, string]{
		"partial": tier.Encode[string](partial{storetest.NewMapBytes()}, codec.String()),
		"plain":   tier.Encode[string](plain{storetest.NewMapBytes()}, codec.String()),
	} {
		_, batch := tier.AsBatcher[string, string](s)
		_, swap := tier.AsSwapper[string, string](s)
		_, clears := tier.AsClearer(s)
		_, measures := tier.AsMeasurer(s)
		if batch || swap || clears || measures {
			t.Errorf("%s: batch %v, swap %v, clear %v, measure %v, want none", name, batch, swap, clears, measures)
		}
		_, err := s.GetMany(ctx, []string{"a"})
		_, swapErr := s.SetIf(ctx, "a", entry(""), time.Hour, tier.Version{})
		for _, err := range []error{err, swapErr, s.SetMany(ctx, nil, nil, nil), s.DeleteMany(ctx, nil), s.Clear(ctx)} {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: got error %v, want errors.ErrUnsupported", name, err)
			}
		}
		if u := s.Usage(); u.Entries != -1 || u.Rejections != -1 {
			t.Errorf("%s: Usage = %+v, want -1", name, u)
		}
	}
	for _, c := range []tier.Capability{tier.CanBatch, tier.CanSwap, tier.CanClear, tier.CanMeasure} {
		if !all.Can(c) {
			t.Errorf("around a store that can do all: Can(%d) is false", c)
		}
	}
	if all.Can(0) || tier.IsLocal[string, string](all) {
		t.Error("a capability that does not exist, or a remote store that is local")
	}
	if err := tier.Encode[string, string](nil, nil).Validate(); err == nil {
		t.Error("Encode of nothing: Validate gives no error")
	}
	if err := tier.Encode[string, string](nil, nil).Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestC30RemainingLife: an entry that crosses to another process and back, again
// and again, ends when it was meant to.
func TestC30RemainingLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := storetest.NewMapBytes()
		a := tier.Encode[string](server, codec.String())
		b := tier.Encode[string](server.Another(), codec.String())
		now := tier.Now()
		e := tier.NewEntry("value", tier.Meta{LoadedAt: now, FreshUntil: now.Add(5 * time.Second), UsableUntil: now.Add(10 * time.Second)})
		for i := range 12 {
			if err := a.Set(ctx, "key", e, tier.Forever); err != nil {
				t.Fatal(err)
			}
			got, err := b.Get(ctx, "key")
			if err != nil {
				t.Fatal(err)
			}
			if alive := got.UsableUntil() > tier.Now(); alive != (i < 10) {
				t.Fatalf("after %d s: usable for %v", i, got.UsableUntil().Sub(tier.Now()))
			}
			if !reflect.DeepEqual(got.Meta(), e.Meta()) {
				t.Fatalf("after %d s: %+v, want %+v", i, got.Meta(), e.Meta())
			}
			e, a, b = got, b, a
			time.Sleep(time.Second)
		}
	})
}

func TestUnreadableErrorShowsNoBytes(t *testing.T) {
	b := storetest.NewMapBytes()
	if err := b.Set(ctx, "key", []byte("a secret of somebody else's, which is longer than an envelope"), tier.Forever); err != nil {
		t.Fatal(err)
	}
	_, err := tier.Encode[string](b, codec.String()).Get(ctx, "key")
	if want := "terrace: unreadable entry: magic"; err == nil || err.Error() != want {
		t.Errorf("got error %q, want %q", err, want)
	}
}
