package tier_test

import (
	"errors"
	"math"
	"testing"

	"github.com/terracecache/terrace/tier"
)

func roundTrip[K comparable](t *testing.T, keys ...K) {
	t.Helper()
	c, err := tier.NewKeyCoder[K]()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range keys {
		if got, err := c.Key(c.Text(want)); err != nil || got != want {
			t.Errorf("%T %v came back as %v, %v", want, want, got, err)
		}
	}
}

type keyParts struct {
	Name   string
	id     int16 // a key is all of its fields
	On     bool
	Scores [2]float32
	Nested struct{ a, b uint8 }
	C      complex128
}

func TestKeysComeBackFromTheirTexts(t *testing.T) {
	type name string
	roundTrip(t, "", "a", "\x00\xff", "+1")
	roundTrip[name](t, "", "x")
	roundTrip(t, 0, -1, math.MaxInt, math.MinInt)
	roundTrip[int8](t, -128, 127)
	roundTrip[uint64](t, 0, math.MaxUint64)
	roundTrip(t, true, false)
	roundTrip(t, 0.5, math.Inf(-1), math.Copysign(0, -1))
	roundTrip(t, complex(1, -2))
	roundTrip(t, [3]string{"a", "", "bc"}, [3]string{"", "ab", "c"})
	roundTrip(t, keyParts{}, keyParts{Name: "n", id: -7, On: true, Scores: [2]float32{1.5, -2}, Nested: struct{ a, b uint8 }{1, 255}, C: 3i})
	roundTrip(t, struct{}{})
}

func TestTextsOfNoKey(t *testing.T) {
	ints, _ := tier.NewKeyCoder[int8]()
	for _, text := range []string{"", "+1", "01", "-0", "128", "1 ", "x"} {
		if got, err := ints.Key(text); !errors.Is(err, tier.ErrBadKey) {
			t.Errorf("int8 of %q = %v, %v", text, got, err)
		}
	}
	parts, _ := tier.NewKeyCoder[keyParts]()
	good := parts.Text(keyParts{Name: "n"})
	for i := range good {
		if got, err := parts.Key(good[:i]); !errors.Is(err, tier.ErrBadKey) {
			t.Errorf("the first %d bytes = %v, %v", i, got, err)
		}
	}
	if got, err := parts.Key(good + "\x00"); !errors.Is(err, tier.ErrBadKey) {
		t.Errorf("with a byte more = %v, %v", got, err)
	}
	if _, err := tier.NewKeyCoder[*int](); !errors.Is(err, tier.ErrBadKey) {
		t.Errorf("pointers as keys: %v", err)
	}
	if _, err := tier.NewKeyCoder[struct{ A any }](); !errors.Is(err, tier.ErrBadKey) {
		t.Errorf("interfaces in keys: %v", err)
	}
}

func TestFormsOfKeys(t *testing.T) {
	form := func(c interface{ Form() uint32 }, err error) uint32 {
		if err != nil {
			t.Fatal(err)
		}
		return c.Form()
	}
	type name string
	if form(tier.NewKeyCoder[string]()) != form(tier.NewKeyCoder[name]()) || form(tier.NewKeyCoder[int]()) != form(tier.NewKeyCoder[uint8]()) {
		t.Error("types with the same texts have different forms")
	}
	seen := make(map[uint32]int)
	for i, f := range []uint32{
		form(tier.NewKeyCoder[string]()), form(tier.NewKeyCoder[int]()), form(tier.NewKeyCoder[bool]()), form(tier.NewKeyCoder[float64]()),
		form(tier.NewKeyCoder[[1]int]()), form(tier.NewKeyCoder[[1]uint]()), form(tier.NewKeyCoder[struct{ A, B string }]()),
		form(tier.NewKeyCoder[struct{ A struct{ B string } }]()), form(tier.NewKeyCoder[[2]string]()),
	} {
		if j, twice := seen[f]; twice {
			t.Errorf("types %d and %d have one form", i, j)
		}
		seen[f] = i
	}
}

func FuzzKeyCoder(f *testing.F) {
	c, err := tier.NewKeyCoder[keyParts]()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.Text(keyParts{Name: "name", id: 3}))
	f.Fuzz(func(t *testing.T, text string) {
		if key, err := c.Key(text); err == nil && c.Text(key) != text {
			t.Errorf("%q gave a key with the text %q", text, c.Text(key))
		}
	})
}
