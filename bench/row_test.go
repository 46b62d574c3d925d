package main

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Stale answers are counted with how far past fresh they were; writes and deletes with how
// long they took from when they were due.
func TestTallyOfStaleAnswersAndChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settingsOf(t, "--ttl", "1s", "--stale", "1s", "--keys", "1", "--origin-latency", "10ms")
		o := s.newOrigin()
		defer o.close()
		cache, err := newCache(combination{tiers: []string{"l1"}}.chain(capacities{l1: 60}, nil), s, "swr", o)
		if err != nil {
			t.Fatal(err)
		}
		defer cache.Close(t.Context())
		w := newWorkload(1, 0, 0, 1)
		w.ops = []operation{opRead, opRead, opRead, opRead, opWrite, opDelete}
		tally := newTally(s.Slow)
		tally.fresh = s.TTL
		for i, wait := range []time.Duration{0, 500 * time.Millisecond, 740 * time.Millisecond, 500 * time.Millisecond, 0, 0} {
			time.Sleep(wait)
			due := tier.Now().Add(-time.Duration(i) * time.Second) // each begins so late
			tally.do(t.Context(), cache, o, w, i, due)
			synctest.Wait()
		}
		// Loaded at 0, fresh at 0.51 s, stale for 0.25 s at 1.25 s, when it is loaded again.
		r := row{Hits: map[string]int{}}
		tally.fill(&r)
		if tally.err != nil || r.Requests != 4 || r.Misses != 1 || r.Stale != 1 || r.Writes != 1 || r.Deletes != 1 {
			t.Fatalf("got %+v, %v", r, tally.err)
		}
		if got := tally.stale.quantile(1).Seconds(); math.Abs(got-0.25) > 0.001 {
			t.Errorf("stale for %v s past fresh, want 0.25", got)
		}
		for what, c := range map[string]struct {
			got  *percentiles
			want float64
		}{"write": {r.WriteLatency, 4}, "delete": {r.DeleteLatency, 5}} {
			if c.got == nil || math.Abs(c.got.P50/c.want-1) > 0.0011 {
				t.Errorf("%s: got %+v, want %v s", what, c.got, c.want)
			}
		}
	})
}
