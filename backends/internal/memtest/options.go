package memtest

import (
	"errors"
	"math"
	"testing"
	"time"
)

// BadOptions checks that a store with a size that makes no sense answers everything
// with what is wrong, and so do those of the caller, made with other wrong options.
func BadOptions(t *testing.T, newStore New[string, int], more ...Store[string, int]) {
	var stores []Store[string, int]
	for _, size := range []Size{{0, 0}, {-1, 0}, {math.MinInt, 0}, {1, 2}, {1, -1}, {1, math.MinInt}} {
		stores = append(stores, newStore(size))
	}
	Refused(t, append(stores, more...)...)
	if err := newStore(Size{Capacity: 1}).Validate(); err != nil {
		t.Errorf("Capacity 1: Validate: %v", err)
	}
}

// Refused checks that stores, all made with wrong options, answer with what is wrong.
func Refused(t *testing.T, stores ...Store[string, int]) {
	for i, s := range stores {
		refused(t, i, s)
	}
}

func refused(t *testing.T, i int, s Store[string, int]) {
	want := s.Validate()
	if want == nil {
		t.Errorf("store %d: Validate gives no error", i)
		return
	}
	_, getErr := s.Get(ctx, "key")
	for method, got := range map[string]error{
		"Get":    getErr,
		"Set":    s.Set(ctx, "key", endless(1), time.Hour),
		"Delete": s.Delete(ctx, "key"),
		"Clear":  s.Clear(ctx),
	} {
		if !errors.Is(got, want) {
			t.Errorf("%v: %s gives error %v", want, method, got)
		}
	}
	s.Usage()
	if err := s.Close(); err != nil {
		t.Errorf("%v: Close: %v", want, err)
	}
}
