package memtest

import (
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/tier"
)

// TTL checks that an entry comes back with the shorter of its own life and the ttl,
// and that one without a life is not kept, nor is what it was to replace.
func TTL(t *testing.T, newStore New[string, int]) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(Size{Capacity: 10})
		now := tier.Now()
		entry := tier.NewEntry(1, tier.Meta{FreshUntil: now.Add(time.Minute), UsableUntil: now.Add(time.Hour)})
		for _, c := range []struct {
			ttl  time.Duration
			want tier.Instant
		}{
			{time.Second, now.Add(time.Second)},
			{1, now.Add(1)},
			{time.Hour, now.Add(time.Hour)},
			{2 * time.Hour, now.Add(time.Hour)},
			{math.MaxInt64 - 1, now.Add(time.Hour)},
			{tier.Forever, now.Add(time.Hour)},
		} {
			if err := s.Set(ctx, "key", entry, c.ttl); err != nil {
				t.Fatal(err)
			}
			got, err := s.Get(ctx, "key")
			if err != nil || got == nil || got.UsableUntil() != c.want || got.FreshUntil() != entry.FreshUntil() {
				t.Errorf("ttl %v: got %+v, %v; want UsableUntil %v", c.ttl, got, err, c.want)
			}
		}
		for _, ttl := range []time.Duration{0, -1, math.MinInt64} {
			MustSet(t, s, "key", 1)
			if err := s.Set(ctx, "key", entry, ttl); err != nil {
				t.Fatal(err)
			}
			if Has(t, s, "key") {
				t.Errorf("ttl %v: the entry, or an older one, is held", ttl)
			}
		}
	})
}

// CloseDuringUse checks that all methods turn to [tier.ErrClosed] while others run
// (C72), and that nothing is held then.
func CloseDuringUse(t *testing.T, newStore New[int, int]) {
	s := newStore(Size{Capacity: 100, Shards: 4})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for n := 0; ; n++ {
				_, getErr := s.Get(ctx, n%7)
				setErr := s.Set(ctx, n%7, endless(i), time.Hour)
				deleteErr := s.Delete(ctx, n%5)
				if errors.Is(getErr, tier.ErrClosed) && errors.Is(setErr, tier.ErrClosed) && errors.Is(deleteErr, tier.ErrClosed) {
					return
				}
			}
		})
	}
	wg.Go(func() { _ = s.Clear(ctx); _ = s.Close() })
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if err := s.Clear(ctx); !errors.Is(err, tier.ErrClosed) {
		t.Errorf("Clear after Close: got error %v, want tier.ErrClosed", err)
	}
	if u := s.Usage(); u.Entries != 0 {
		t.Errorf("holds %d entries after Close, want none", u.Entries)
	}
}
