package codec_test

import (
	"bytes"
	"encoding/gob"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

type product struct {
	ID    int64
	Name  string
	Price float64
	Tags  []string
	Attrs map[string]int
	Made  time.Time
	Next  *product
}

type pair struct{ A, B int }

// each runs f with the codecs that take any type.
func each[V any](t *testing.T, f func(t *testing.T, c tier.Codec[V])) {
	t.Helper()
	for _, c := range []tier.Codec[V]{codec.JSON[V](), codec.MsgPack[V](), codec.Gob[V]()} {
		t.Run(c.Name()+"/"+reflect.TypeFor[V]().String(), func(t *testing.T) { f(t, c) })
	}
}

func roundTrip[V any](t *testing.T, c tier.Codec[V], want V) {
	t.Helper()
	prefix := []byte("envelope")
	b, err := c.Append(prefix, want)
	if err != nil {
		t.Fatalf("Append(%#v): %v", want, err)
	}
	if !bytes.HasPrefix(b, prefix) {
		t.Fatalf("Append(%#v) = %q, lost what was there before", want, b)
	}
	payload := b[len(prefix):]
	got, err := c.Decode(payload)
	if err != nil {
		t.Fatalf("Decode(%q): %v", payload, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("round trip: got %#v, want %#v", got, want)
	}
	if b, err := c.Append(nil, got); err != nil || len(b) != len(payload) {
		t.Errorf("Append to nil: %d bytes, %v; want %d", len(b), err, len(payload))
	}
}

func roundTripAll[V any](t *testing.T, values ...V) {
	t.Helper()
	each(t, func(t *testing.T, c tier.Codec[V]) {
		for _, v := range values {
			roundTrip(t, c, v)
		}
	})
}

func TestRoundTrip(t *testing.T) {
	made := time.Date(2024, 2, 29, 12, 0, 0, 123456789, time.UTC)
	full := product{ID: math.MaxInt64, Name: "日本 \x00", Price: 0.1, Tags: []string{"a", ""}, Attrs: map[string]int{"x": 1}, Made: made}
	roundTripAll(t, full.Name, "", strings.Repeat("x", 100_000))
	roundTripAll(t, 0, -1, math.MaxInt, math.MinInt)
	roundTripAll(t, uint64(math.MaxUint64), 0)
	roundTripAll(t, 0.0, math.SmallestNonzeroFloat64, math.MaxFloat64)
	roundTripAll(t, false, true)
	roundTripAll(t, struct{}{})
	roundTripAll(t, [3]int{1, 2, 3}, [3]int{})
	roundTripAll(t, []byte{}, []byte{0}, bytes.Repeat([]byte{0xff}, 70_000))
	roundTripAll(t, []string{}, []string{""}, []string{"a", "b"})
	roundTripAll(t, map[string]int{}, map[string]int{"": 0, "b": 2})
	roundTripAll(t, pair{}, pair{A: 1})
	roundTripAll(t, &pair{}, &pair{B: 2})
	roundTripAll(t, &product{ID: 1, Next: &product{ID: 2}})

	// Empty and nil are one inside a gob, so only full ones come back there.
	for _, c := range []tier.Codec[product]{codec.JSON[product](), codec.MsgPack[product](), codec.Gob[product]()} {
		b, err := c.Append(nil, full)
		if err != nil {
			t.Fatalf("%s: %v", c.Name(), err)
		}
		got, err := c.Decode(b)
		if err != nil {
			t.Fatalf("%s: %v", c.Name(), err)
		}
		if !got.Made.Equal(made) {
			t.Errorf("%s: got time %v, want %v", c.Name(), got.Made, made)
		}
		got.Made = made
		if !reflect.DeepEqual(got, full) {
			t.Errorf("%s: got %+v, want %+v", c.Name(), got, full)
		}
	}
	roundTrip(t, codec.Gob[map[pair]string](), map[pair]string{{1, 2}: "x"})
}

func TestRawAndString(t *testing.T) {
	for _, s := range []string{"", "\x00", "\xff\xfe", "text", strings.Repeat("x", 1<<20)} {
		roundTrip(t, codec.Raw(), []byte(s))
		roundTrip(t, codec.String(), s)
	}
	for _, data := range [][]byte{nil, {}} {
		if got, err := codec.Raw().Decode(data); got == nil || err != nil {
			t.Errorf("Raw Decode(%#v) = %#v, %v; want an empty slice that is not nil", data, got, err)
		}
	}
	data := []byte("abc")[:2]
	got, _ := codec.Raw().Decode(data)
	_ = append(got, 'X')
	if string(data[:3]) != "abc" {
		t.Errorf("append to a decoded value changed the store's bytes to %q", data[:3])
	}
}

// A value inside an interface keeps its type where the codec can do that.
func TestInterface(t *testing.T) {
	gob.Register(pair{})
	roundTrip[any](t, codec.Gob[any](), pair{A: 1})
	roundTrip[any](t, codec.MsgPack[any](), "text")
	roundTrip[any](t, codec.JSON[any](), "text")
	roundTrip[any](t, codec.JSON[any](), nil)
}

func TestRefusesWhatItDoesNotWrite(t *testing.T) {
	refuses(t, pair{A: 1})
	refuses(t, true)
	refuses(t, "text")
	refuses(t, []string{"a"})
	refuses(t, map[string]int{"a": 1})
}

func refuses[V any](t *testing.T, good V) {
	t.Helper()
	each(t, func(t *testing.T, c tier.Codec[V]) {
		b, err := c.Append(nil, good)
		if err != nil {
			t.Fatal(err)
		}
		for what, data := range map[string][]byte{
			"nothing":           {},
			"nil":               nil,
			"a byte after":      append(bytes.Clone(b), '!'),
			"twice":             append(bytes.Clone(b), b...),
			"the last byte off": b[:len(b)-1],
			"all ones":          bytes.Repeat([]byte{0xff}, 64),
		} {
			if got, err := c.Decode(data); err == nil {
				t.Errorf("Decode of %s (%q) = %#v, want an error", what, data, got)
			}
		}
	})
}

// TestC57NullIsNoStruct: null in the place of a struct or scalar would decode
// into a plausible zero value.
func TestC57NullIsNoStruct(t *testing.T) {
	null := map[string][]byte{"json": []byte(" null "), "msgpack": {0xc0}}
	each(t, func(t *testing.T, c tier.Codec[pair]) {
		if data := null[c.Name()]; data != nil {
			if got, err := c.Decode(data); err == nil {
				t.Errorf("Decode(%q) = %#v, want an error", data, got)
			}
		}
	})
	each(t, func(t *testing.T, c tier.Codec[int]) {
		if data := null[c.Name()]; data != nil {
			if got, err := c.Decode(data); err == nil {
				t.Errorf("Decode(%q) = %#v, want an error", data, got)
			}
		}
	})
	if got, err := codec.JSON[*pair]().Decode([]byte("null")); got != nil || err != nil {
		t.Errorf("a nil pointer: got %v, %v", got, err)
	}
}

// What cannot be encoded is an error, also where the library panics.
func TestAppendFails(t *testing.T) {
	each(t, func(t *testing.T, c tier.Codec[chan int]) {
		if b, err := c.Append(nil, make(chan int)); err == nil {
			t.Errorf("Append of a channel = %q, want an error", b)
		}
	})
	if b, err := codec.JSON[float64]().Append(nil, math.NaN()); err == nil {
		t.Errorf("json Append of NaN = %q, want an error", b)
	}
}

// Lengths that the data does not hold must not be allocated.
func TestNoAllocationBomb(t *testing.T) {
	bombs := map[string][]byte{
		"array32": {0xdd, 0xff, 0xff, 0xff, 0xff, 0x01},
		"map32":   {0xdf, 0x7f, 0xff, 0xff, 0xff, 0x01, 0x01},
		"str32":   {0xdb, 0xff, 0xff, 0xff, 0xff},
		"bin32":   {0xc6, 0xff, 0xff, 0xff, 0xff},
		"ext32":   {0xc9, 0xff, 0xff, 0xff, 0xff, 0x01},
		"depth":   bytes.Repeat([]byte{0x91}, 20_000_000),
		"gob":     {0xfc, 0x3f, 0xff, 0xff, 0xff, 0x01},
		"json":    bytes.Repeat([]byte{'['}, 20_000_000),
	}
	for name, data := range bombs {
		each(t, func(t *testing.T, c tier.Codec[any]) { defuses(t, name, c, data) })
		each(t, func(t *testing.T, c tier.Codec[[][1024]int]) { defuses(t, name, c, data) })
		each(t, func(t *testing.T, c tier.Codec[map[string]string]) { defuses(t, name, c, data) })
	}
}

func defuses[V any](t *testing.T, name string, c tier.Codec[V], data []byte) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := c.Decode(data)
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Errorf("%s: Decode = %#v, want an error", name, got)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > uint64(4*len(data)+4<<20) {
		t.Errorf("%s: Decode of %d bytes allocated %d", name, len(data), used)
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range []tier.Codec[product]{codec.JSON[product](), codec.MsgPack[product](), codec.Gob[product]()} {
		b, err := c.Append(nil, product{ID: 1, Name: "x", Tags: []string{"t"}, Next: &product{}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		decodes[product](t, data)
		decodes[any](t, data)
		decodes[map[string][]int](t, data)
		decodes[struct{}](t, data)
	})
}

// decodes checks that Decode does not panic, and that what it accepts can be
// written again.
func decodes[V any](t *testing.T, data []byte) {
	for _, c := range []tier.Codec[V]{codec.JSON[V](), codec.MsgPack[V](), codec.Gob[V]()} {
		v, err := c.Decode(data)
		if err != nil {
			continue
		}
		if reflect.ValueOf(&v).Elem().IsZero() {
			continue // Encode writes nil itself
		}
		if _, err := c.Append(nil, v); err != nil && c.Name() != "gob" {
			t.Errorf("%s decodes %q to %#v and cannot write it: %v", c.Name(), data, v, err)
		}
	}
}
