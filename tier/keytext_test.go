package tier

import (
	"errors"
	"math"
	"testing"
)

type (
	name    string
	id      int32
	compose struct {
		Tenant, User string
		N            int64
		F            float64
		On           bool
		Pair         [2]string
		nested       struct{ a, b string } // unexported fields are part of a key too
	}
)

func textOf[K comparable](t *testing.T, key K) string {
	t.Helper()
	f, err := keyText[K]()
	if err != nil {
		t.Fatalf("keyText[%T]: %v", key, err)
	}
	return f(key)
}

func TestKeyText(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{textOf(t, "a b\xff"), "a b\xff"},
		{textOf(t, name("x")), "x"},
		{textOf(t, 42), "42"},
		{textOf(t, id(-1)), "-1"},
		{textOf(t, int64(math.MinInt64)), "-9223372036854775808"},
		{textOf(t, uint64(math.MaxUint64)), "18446744073709551615"},
		{textOf(t, uintptr(7)), "7"},
		{textOf(t, true), "\x01"},
		{textOf(t, struct{}{}), ""},
		{textOf(t, [2]string{"a", "bc"}), "\x01a\x02bc"},
		{textOf(t, struct {
			A string
			B uint16
		}{"x", 258}), "\x01x\x00\x00\x00\x00\x00\x00\x01\x02"},
		{textOf(t, 1.0), "\x3f\xf0\x00\x00\x00\x00\x00\x00"},
		{textOf(t, float32(1)), "\x3f\xf0\x00\x00\x00\x00\x00\x00"},
		{textOf(t, complex(1, 0)), "\x3f\xf0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	if textOf(t, 0.0) != textOf(t, math.Copysign(0, -1)) {
		t.Error("0 and -0 are equal, but have two texts")
	}
}

func TestKeyTextRefuses(t *testing.T) {
	refuse(t, keyText[*int])
	refuse(t, keyText[any])
	refuse(t, keyText[chan int])
	refuse(t, keyText[[1]*int])
	refuse(t, keyText[struct{ A error }])
}

func refuse[K comparable](t *testing.T, f func() (func(K) string, error)) {
	t.Helper()
	if _, err := f(); !errors.Is(err, ErrBadKey) {
		t.Errorf("keyText[%T]: got error %v, want ErrBadKey", *new(K), err)
	}
}

// FuzzKeyText: texts are equal exactly where keys are.
func FuzzKeyText(f *testing.F) {
	f.Add("a", "b", int64(1), 0.5, true, "ab", "", int64(1), 0.5, true)
	f.Add("", "", int64(0), 0.0, false, "", "", int64(0), math.Copysign(0, -1), false)
	f.Add("\x01a", "", int64(-1), 0.0, false, "", "\x01a", int64(-1), 0.0, false)
	text, err := keyText[compose]()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a1, a2 string, an int64, af float64, ab bool, b1, b2 string, bn int64, bf float64, bb bool) {
		a := compose{Tenant: a1, User: a2, N: an, F: af, On: ab, Pair: [2]string{a2, a1}}
		b := compose{Tenant: b1, User: b2, N: bn, F: bf, On: bb, Pair: [2]string{b2, b1}}
		a.nested.a, b.nested.b = a1, b1
		if a != a || b != b {
			return // NaN is refused before it gets a text
		}
		if got, want := text(a) == text(b), a == b; got != want {
			t.Errorf("%+v and %+v: texts equal %v, keys equal %v", a, b, got, want)
		}
	})
}
