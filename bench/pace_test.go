package main

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/tier"
)

// With workers enough, every read starts when it should and takes as long as it
// takes, whatever others do.
func TestOpenLoopKeepsItsSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		starts := make(map[int]time.Duration)
		p := newPace(100, 1000, time.Sleep)
		openLoop(t.Context(), p, 20, func(i int, due tier.Instant) {
			mu.Lock()
			starts[i] = due.Sub(p.start)
			mu.Unlock()
			if late := tier.Now().Sub(due); late != 0 {
				t.Errorf("read %d began %v late", i, late)
			}
			time.Sleep(10 * time.Millisecond)
		})
		if len(starts) != 100 {
			t.Errorf("got %d reads, want 100", len(starts))
		}
		for i, at := range starts {
			if want := time.Duration(i) * time.Millisecond; at != want {
				t.Errorf("read %d: due at %v, want %v", i, at, want)
			}
		}
	})
}

// No coordinated omission: one read that takes long makes those slow that should
// have started meanwhile.
func TestOpenLoopCountsTheWaitForAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally(10 * time.Millisecond)
		openLoop(t.Context(), newPace(1000, 1000, time.Sleep), 1, func(i int, due tier.Instant) {
			late := tier.Now().Sub(due)
			if i == 100 {
				time.Sleep(200 * time.Millisecond)
			}
			tally.add(tier.Now().Sub(due), late, "", 0)
		})
		// 200 ms, and behind it 199, 198, …, of which 10 are not over 10 ms.
		if tally.slow != 190 {
			t.Errorf("got %d slow reads, want 190", tally.slow)
		}
		if tally.behind != 189 {
			t.Errorf("got %d reads that began late, want 189", tally.behind)
		}
		for q, want := range map[float64]time.Duration{0.5: 0, 0.9: 100 * time.Millisecond, 0.99: 190 * time.Millisecond, 1: 200 * time.Millisecond} {
			got := tally.latency.quantile(q)
			if diff := (got - want).Abs(); diff > 2*time.Millisecond {
				t.Errorf("quantile %v: got %v, want %v", q, got, want)
			}
		}
	})
}

func TestOpenLoopEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		reads := 0
		openLoop(ctx, newPace(1000, 0.1, time.Sleep), 4, func(int, tier.Instant) { reads++ })
		if took := time.Since(began); took != 5*time.Second || reads != 1 {
			t.Errorf("got %d reads in %v, want 1 in 5s", reads, took)
		}
	})
}

func TestNap(t *testing.T) {
	nap, release := newNap()
	defer release()
	for _, d := range []time.Duration{0, time.Microsecond, 100 * time.Microsecond, 2 * time.Millisecond} {
		began := time.Now()
		nap(d)
		if took := time.Since(began); took < d {
			t.Errorf("nap(%v) took %v", d, took)
		}
	}
}
