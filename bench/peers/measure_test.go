package main

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestCalibrationFindsTheTime(t *testing.T) {
	w := stopwatch{goroutines: 2, seconds: 0.05}
	nap := func(_, n int) error {
		time.Sleep(time.Duration(n) * 10 * time.Microsecond)
		return nil
	}
	s, err := w.measure(t.Context(), nap)
	if err != nil {
		t.Fatal(err)
	}
	// Two sleep at once, so an operation of either takes half of its time.
	if s.ns < 4_900 || s.ns > 20_000 {
		t.Errorf("an operation takes %v ns, want 5,000 and a little", s.ns)
	}
	if w.n < 2_000 || w.n > 12_000 {
		t.Errorf("%d operations, want about 10,000", w.n)
	}
}

var kept [4]*payload

func TestAllocationsOfTheLoopAlone(t *testing.T) {
	s, err := timed(4, 4000, func(worker, n int) error {
		for range n {
			kept[worker] = new(payload)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.allocs < 1 || s.allocs > 1.02 || s.bytes < 64 || s.bytes > 70 {
		t.Errorf("got %v allocations of %v bytes an operation, want 1 of 64", s.allocs, s.bytes)
	}
}

func TestAnErrorEndsTheMeasurement(t *testing.T) {
	want := errors.New("no")
	var calls atomic.Int64
	w := stopwatch{goroutines: 3, seconds: 1}
	_, err := w.measure(t.Context(), func(worker, _ int) error {
		calls.Add(1)
		if worker == 1 {
			return want
		}
		return nil
	})
	if !errors.Is(err, want) || calls.Load() != 3 {
		t.Errorf("got %v after %d calls, want %v after those of the first try", err, calls.Load(), want)
	}
}
