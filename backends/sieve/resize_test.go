package sieve

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/terracecache/terrace/tier"
)

// After each of many resizes, between writes, reads and removals, all that must hold of a
// store holds, and nothing was evicted for which there was room.
func TestResizeKeepsOrder(t *testing.T) {
	for _, a := range []Admission{Filtered, Always} {
		for _, shards := range []int{1, 4} {
			t.Run(fmt.Sprint(a, shards), func(t *testing.T) {
				s := NewWith[int, int](Options{Capacity: 100, Admission: a, Shards: shards})
				rnd := rand.New(rand.NewPCG(5, uint64(shards)))
				for round := range 2000 {
					capacity := s.Usage().MaxEntries
					for range rnd.IntN(300) {
						key := rnd.IntN(int(2 * capacity))
						switch rnd.IntN(8) {
						case 0:
							if err := s.Delete(ctx, key); err != nil {
								t.Fatal(err)
							}
						case 1, 2, 3:
							if _, err := s.Get(ctx, key); err != nil {
								t.Fatal(err)
							}
						default:
							if err := s.Set(ctx, key, endless(key), tier.Forever); err != nil {
								t.Fatal(err)
							}
						}
					}
					if rnd.IntN(50) == 0 {
						if err := s.Clear(ctx); err != nil {
							t.Fatal(err)
						}
					}
					next := int64(shards + rnd.IntN(30))
					if rnd.IntN(2) == 0 {
						next = int64(shards + rnd.IntN(2000))
					}
					var held, room []int
					for i := range s.shards {
						held = append(held, s.shards[i].len())
						room = append(room, s.share(int(next), i))
					}
					if err := s.Resize(next); err != nil {
						t.Fatal(err)
					}
					if err := s.check(); err != nil {
						t.Fatalf("round %d, from %d to %d: %v", round, capacity, next, err)
					}
					if got := s.Usage().MaxEntries; got != next {
						t.Fatalf("round %d: MaxEntries %d, want %d", round, got, next)
					}
					for i := range s.shards {
						if got, want := s.shards[i].len(), min(held[i], room[i]); got != want {
							t.Fatalf("round %d, from %d to %d: shard %d has %d pairs left of %d, want %d",
								round, capacity, next, i, got, held[i], want)
						}
					}
				}
			})
		}
	}
}

// What is asked for often is still known to be after a resize, and outlasts a scan.
func TestResizeKeepsWhatTheSketchKnows(t *testing.T) {
	for _, to := range []int64{150, 4000} {
		s := NewWith[int, int](Options{Capacity: 1000, Shards: 1})
		for range 30 {
			for key := range 100 {
				if e, _ := s.Get(ctx, key); e == nil {
					_ = s.Set(ctx, key, endless(key), tier.Forever)
				}
			}
			for range 100 {
				key := 1000 + rand.IntN(1_000_000)
				_ = s.Set(ctx, key, endless(key), tier.Forever)
			}
		}
		if err := s.Resize(to); err != nil {
			t.Fatal(err)
		}
		for key := range 3 * int(to) {
			_ = s.Set(ctx, 2_000_000+key, endless(key), tier.Forever)
		}
		left := 0
		for key := range 100 {
			if e, _ := s.Get(ctx, key); e != nil {
				left++
			}
		}
		if left < 90 {
			t.Errorf("resized to %d: %d of 100 entries in use outlast a scan, want most", to, left)
		}
		if got := s.shards[0].sketch.limit; got != samplePerKey*int(to) {
			t.Errorf("resized to %d: the sketch is for %d", to, got/samplePerKey)
		}
	}
}
