package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestOriginCountsCallsAndPeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigin(100*time.Millisecond, 64)
		want := func(calls, peak int64) {
			t.Helper()
			if o.calls.Load() != calls || o.peak.Load() != peak {
				t.Errorf("got %d calls, peak %d; want %d, %d", o.calls.Load(), o.peak.Load(), calls, peak)
			}
		}
		load := func() { _, _ = o.load(t.Context(), "k") }
		for range 30 {
			go load()
		}
		time.Sleep(50 * time.Millisecond)
		want(30, 30)
		go load()
		time.Sleep(60 * time.Millisecond)
		want(31, 31)
		o.mark() // while the last one runs
		want(0, 1)
		go load()
		synctest.Wait()
		want(1, 2)
		time.Sleep(time.Second)
		go load()
		synctest.Wait()
		want(2, 2)
		time.Sleep(time.Second)
	})
}

func TestOriginHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := newOrigin(time.Hour, 16).load(ctx, "k")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestValuesTellTheirAgeAndKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigin(100*time.Millisecond, 300)
		v, err := o.load(t.Context(), "k")
		if err != nil || len(v) != 300 {
			t.Fatalf("got %d bytes, %v", len(v), err)
		}
		time.Sleep(time.Second)
		if got, err := age("k", v); err != nil || got != 1100*time.Millisecond {
			t.Errorf("got age %v, %v, want 1.1s: from the load's start", got, err)
		}
		for _, wrong := range [][]byte{nil, v[:8]} {
			if _, err := age("k", wrong); err == nil {
				t.Errorf("%d bytes are taken for a value", len(wrong))
			}
		}
		if _, err := age("other", v); err == nil {
			t.Error("a value is taken for another key's")
		}
	})
}
