package ristretto_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/tier"
)

// mortal returns an entry that dies after the given life.
func mortal[V any](value V, life time.Duration) *tier.Entry[V] {
	until := tier.Now().Add(life)
	return tier.NewEntry(value, tier.Meta{FreshUntil: until, UsableUntil: until})
}

func mustLive[K comparable, V any](t testing.TB, s *ristretto.Store[K, V], key K, value V, life time.Duration) {
	t.Helper()
	if err := s.Set(ctx, key, mortal(value, life), tier.Forever); err != nil {
		t.Fatalf("Set(%v): %v", key, err)
	}
}

// toSlotEnd sleeps until the end of the present slot, when notes are looked at.
func toSlotEnd() {
	width := tier.Instant(ristretto.SlotWidth)
	now := tier.Now()
	past := (now%width + width) % width // now is negative in a bubble
	time.Sleep(time.Duration(width - past))
}

// atRest waits for the settler and checks what must hold whenever it has nothing to
// do.
func atRest[K comparable, V any](t testing.TB, s *ristretto.Store[K, V]) {
	t.Helper()
	synctest.Wait()
	if got := s.Pending(); got != 0 {
		t.Fatalf("%d records at rest", got)
	}
	u := s.Usage()
	if got, limit := s.Notes(), int(2*u.Entries)+ristretto.SpareNotes; got > limit {
		t.Fatalf("%d notes for %d entries, want %d at most", got, u.Entries, limit)
	}
	if got := s.Slots(); got > 4*255 {
		t.Fatalf("notes are under %d slots", got)
	}
}

// forgotten checks that the store neither knows of an end nor waits for one.
func forgotten[K comparable, V any](t testing.TB, s *ristretto.Store[K, V], when string) {
	t.Helper()
	synctest.Wait()
	if notes, waits := s.Notes(), s.Waits(); notes != 0 || waits {
		t.Errorf("%s: %d notes, a timer runs: %v; want neither", when, notes, waits)
	}
}

// TestTheDeadGo: entries of all lives are given back soon after their ends, and no
// other is.
func TestTheDeadGo(t *testing.T) {
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		n := 20_000
		if testing.Short() {
			n = 2000
		}
		rnd := rand.New(rand.NewPCG(4, 1))
		s := open(t, each[int, int](int64(10*n)))
		ends := make([]tier.Instant, n)
		for key := range ends {
			longest := []time.Duration{ristretto.SlotWidth, time.Minute, time.Hour, day, 300 * day}[rnd.IntN(5)]
			entry := mortal(key, 1+rand.N(longest))
			if rnd.IntN(10) == 0 {
				entry = endless(key)
			}
			ends[key] = entry.UsableUntil()
			if err := s.Set(ctx, key, entry, tier.Forever); err != nil {
				t.Fatal(err)
			}
		}
		for _, wait := range []time.Duration{
			0, 1, ristretto.SlotWidth - 2, 1, 1, 10 * time.Second, 30 * time.Second, time.Minute, 10 * time.Minute, 20 * time.Minute,
			time.Hour, 5 * time.Hour, day, day, 10 * day, 100 * day, 200 * day,
		} {
			time.Sleep(wait)
			atRest(t, s)
			now, held := tier.Now(), int64(0)
			for key, end := range ends {
				e := mustGet(t, s, key)
				if e != nil {
					held++
				}
				switch {
				case end > now && (e == nil || e.Value() != key):
					t.Fatalf("an entry that lives for another %v is gone", end.Sub(now))
				case end <= now.Add(-ristretto.SlotWidth) && e != nil:
					t.Fatalf("an entry is held %v after its end", now.Sub(end))
				}
			}
			u := s.Usage()
			if u.Entries != held || u.Cost != held || u.Evictions != 0 || u.Rejections != 0 {
				t.Fatalf("Usage = %+v, want %d entries and none lost", u, held)
			}
		}
		forgotten(t, s, "when only endless entries are left")
	})
}

// TestTheLastEndCounts does all kinds of writes at random, none of them while
// another of its key has not settled, and compares what is there with a map.
func TestTheLastEndCounts(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 100
	}
	for _, hash := range []struct {
		name string
		of   func(int) uint64
	}{{"hash of its own", nil}, {"one shard", func(key int) uint64 { return uint64(key) << 32 }}} {
		t.Run(hash.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const keys = 500
				o := each[int, int](10 * keys)
				o.Hash = hash.of
				s := open(t, o)
				rnd := rand.New(rand.NewPCG(4, 2))
				want := map[int]*tier.Entry[int]{}
				for round := range rounds {
					for key := range keys {
						switch rnd.IntN(20) {
						case 0, 1:
							want[key] = mortal(round, 1+rand.N(10*time.Second))
						case 2:
							want[key] = mortal(round, 1+rand.N(20*time.Minute))
						case 3:
							want[key] = mortal(round, 1+rand.N(20*24*time.Hour))
						case 4:
							want[key] = endless(round)
						case 5:
							delete(want, key)
						default:
							continue
						}
						if err := s.Set(ctx, key, want[key], tier.Forever); err != nil {
							t.Fatal(err)
						}
					}
					if rnd.IntN(50) == 0 {
						if err := s.Clear(ctx); err != nil {
							t.Fatal(err)
						}
						clear(want)
					}
					atRest(t, s)
					longest := []time.Duration{0, time.Second, 10 * time.Second, 2 * time.Minute, 24 * time.Hour}[rnd.IntN(5)]
					time.Sleep(rand.N(longest + 1))
					atRest(t, s)
					now, held := tier.Now(), int64(0)
					for key := range keys {
						got, want := mustGet(t, s, key), want[key]
						if got != nil {
							held++
						}
						switch {
						case want == nil || want.UsableUntil() <= now.Add(-ristretto.SlotWidth):
							if got != nil {
								t.Fatalf("round %d: key %d is held, and its entry is dead or was deleted", round, key)
							}
						case want.UsableUntil() <= now: // may still be there
						case got == nil || got.Value() != want.Value():
							t.Fatalf("round %d: key %d: got %v, want the value %d", round, key, got, want.Value())
						}
					}
					if u := s.Usage(); u.Entries != held || u.Cost != held || u.Evictions != 0 {
						t.Fatalf("round %d: Usage = %+v, want %d entries", round, u, held)
					}
				}
				if err := s.Clear(ctx); err != nil {
					t.Fatal(err)
				}
				forgotten(t, s, "after Clear")
			})
		})
	}
}

// TestAnEndIsLookedAtFiveTimes at most, the last time in its own slot, and never after
// it.
func TestAnEndIsLookedAtFiveTimes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 3))
	for range 100_000 {
		now := rnd.Uint32()
		end := now + uint32(rnd.Uint64N(uint64(1)<<rnd.IntN(33)))
		if end < now {
			continue
		}
		at := ristretto.FirstNote(end, now)
		for looks := 1; at != end; looks++ {
			if at < now || at > end || looks == 5 {
				t.Fatalf("from %#x to %#x: noted under %#x after %d looks", now, end, at, looks-1)
			}
			now = at + 1 // it is looked at when its slot is over
			at = ristretto.Coarse(end, now)
		}
	}
}

// TestSetsWithJitterTakeTheShortWay: lives that vary, as those of a Lifetime with Jitter do,
// are no reason to tell Ristretto of a key that it holds.
func TestSetsWithJitterTakeTheShortWay(t *testing.T) {
	for _, life := range []time.Duration{10 * time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		t.Run(life.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(3, 5))
				s := ristretto.New(ristretto.Options[int, int]{MaxCost: 1000, Cost: func(int, *tier.Entry[int]) int64 { return 1 }})
				defer s.Close()
				long := 0
				for round := range 100 {
					for key := range 100 {
						mustLive(t, s, key, round, time.Duration((0.9+0.2*rnd.Float64())*float64(life)))
						if round > 0 && s.Pending() > 0 {
							long++
						}
						atRest(t, s)
					}
				}
				if long > 0 {
					t.Errorf("%d Sets went to Ristretto, want none", long)
				}
				time.Sleep(2 * life)
				toSlotEnd()
				atRest(t, s)
				if u := s.Usage(); u.Entries != 0 {
					t.Errorf("%d entries after their end, want none", u.Entries)
				}
			})
		})
	}
}

// TestDeadWhenItSettles: an entry that dies before its write has settled does not
// wait for the end of a slot.
func TestDeadWhenItSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, each[int, int](100))
		mustSet(t, s, 1, 1)
		atRest(t, s)
		mustLive(t, s, 1, 2, -time.Second)
		mustLive(t, s, 2, 2, -time.Hour)
		forgotten(t, s, "after dead entries were set")
		for key := range 3 {
			if e := mustGet(t, s, key); e != nil {
				t.Errorf("key %d holds %d, want nothing", key, e.Value())
			}
		}
		if u := s.Usage(); u.Entries != 0 || u.Cost != 0 || u.Evictions != 0 || u.Rejections != 0 {
			t.Errorf("Usage = %+v, want nothing held and nothing lost", u)
		}
	})
}

// TestNothingWaitsAtRest: a timer runs only while an entry with an end is held.
func TestNothingWaitsAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, each[int, int](100))
		forgotten(t, s, "at the beginning")
		mustSet(t, s, 0, 0)
		forgotten(t, s, "with an endless entry")

		mustLive(t, s, 1, 1, time.Hour)
		atRest(t, s)
		if s.Notes() != 1 || !s.Waits() {
			t.Errorf("with an entry that has an end: %d notes, and a timer runs: %v", s.Notes(), s.Waits())
		}
		mustDelete(t, s, 1)
		forgotten(t, s, "when it was deleted")

		mustLive(t, s, 1, 1, time.Hour)
		atRest(t, s)
		mustSet(t, s, 1, 1)
		forgotten(t, s, "when an endless one replaced it")

		mustLive(t, s, 1, 1, time.Hour)
		atRest(t, s)
		if err := s.Clear(ctx); err != nil {
			t.Fatal(err)
		}
		forgotten(t, s, "after Clear")

		mustSet(t, s, 0, 0)
		mustLive(t, s, 1, 1, time.Hour)
		time.Sleep(time.Hour + ristretto.SlotWidth)
		forgotten(t, s, "when it has died")

		mustLive(t, s, 1, 1, time.Hour)
		atRest(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s.Waits() {
			t.Error("after Close a timer runs")
		}
	})
}

// TestEndsAreForgotten: whatever is written how often, what is noted of ends stays
// in proportion to the entries held.
func TestEndsAreForgotten(t *testing.T) {
	const long = 24 * time.Hour
	steps := 4000
	if testing.Short() {
		steps = 3000
	}
	for name, c := range map[string]struct {
		room int64
		step func(t *testing.T, s *ristretto.Store[int, int], i int)
		most int
	}{
		"one key, ever later": {10, func(t *testing.T, s *ristretto.Store[int, int], i int) {
			mustLive(t, s, 1, i, long)
		}, 1},
		"one key, now sooner, now later": {10, func(t *testing.T, s *ristretto.Store[int, int], i int) {
			mustLive(t, s, 1, i, long/time.Duration(1+i%100))
		}, 2 + ristretto.SpareNotes},
		"one key, deleted between": {10, func(t *testing.T, s *ristretto.Store[int, int], i int) {
			mustLive(t, s, 1, i, long)
			atRest(t, s)
			mustDelete(t, s, 1)
		}, 0},
		"one key, deleted between, beside another": {10, func(t *testing.T, s *ristretto.Store[int, int], i int) {
			if i == 0 {
				mustLive(t, s, 2, 2, 10*long)
			}
			mustLive(t, s, 1, i, long)
			atRest(t, s)
			mustDelete(t, s, 1)
		}, 2 + ristretto.SpareNotes},
		"one key, endless between": {10, func(t *testing.T, s *ristretto.Store[int, int], i int) {
			mustSet(t, s, 1, i)
			atRest(t, s)
			mustLive(t, s, 1, i, long)
		}, 1},
		"ever new keys": {100, func(t *testing.T, s *ristretto.Store[int, int], i int) {
			mustLive(t, s, i, i, long)
		}, 200 + ristretto.SpareNotes},
		"ever new keys in bursts": {1000, func(t *testing.T, s *ristretto.Store[int, int], i int) {
			for j := range 10 {
				mustLive(t, s, 10*i+j, i, long)
			}
		}, 2000 + ristretto.SpareNotes},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, each[int, int](c.room))
				for i := range steps {
					c.step(t, s, i)
					atRest(t, s)
					if got := s.Notes(); got > c.most {
						t.Fatalf("step %d: %d notes, want %d at most", i, got, c.most)
					}
					time.Sleep(rand.N(2 * time.Second))
				}
				time.Sleep(20 * long)
				forgotten(t, s, "when all has died")
				if u := s.Usage(); u.Entries != 0 || u.Cost != 0 {
					t.Errorf("Usage = %+v, want nothing held", u)
				}
			})
		})
	}
}

// TestC63WritesWhileTheDeadGo has writers at work at the very moment when entries
// are given back: a read gives the last write or nothing, and at rest nothing dead
// is left.
func TestC63WritesWhileTheDeadGo(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	for name, o := range map[string]ristretto.Options[int, version]{
		"room":     each[int, version](100_000),
		"no room":  each[int, version](200),
		"one hash": {MaxCost: 1000, Cost: func(int, *tier.Entry[version]) int64 { return 1 }, Hash: func(int) uint64 { return 7 }},
		"growing":  {MaxCost: 3000, Cost: func(_ int, e *tier.Entry[version]) int64 { return e.Value().n % 100 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const writers, keysEach = 4, 300
				s := open(t, o)
				var written [writers * keysEach]atomic.Int64
				for range rounds {
					toSlotEnd()
					var wg sync.WaitGroup
					for w := range writers {
						wg.Go(func() {
							for i := range keysEach {
								key := w*keysEach + i
								n := written[key].Load() + 1
								var err error
								switch life := time.Duration(rand.N(4)) * ristretto.SlotWidth; rand.N(6) {
								case 0:
									err = s.Delete(ctx, key)
								case 1:
									err = s.Set(ctx, key, endless(version{key, n}), tier.Forever)
								case 2:
									continue
								default:
									err = s.Set(ctx, key, mortal(version{key, n}, 1+rand.N(life+1)), tier.Forever)
								}
								if err != nil {
									t.Error(err)
								}
								written[key].Store(n)
								if e := mustGet(t, s, key); e != nil && e.Value() != (version{key, n}) {
									t.Errorf("key %d: its writer reads %+v after write %d", key, e.Value(), n)
								}
							}
						})
					}
					wg.Go(func() {
						for range len(written) {
							key := rand.N(len(written))
							atLeast := written[key].Load()
							if e := mustGet(t, s, key); e != nil && (e.Value().key != key || e.Value().n < atLeast) {
								t.Errorf("key %d: a read that began after write %d gives %+v", key, atLeast, e.Value())
							}
						}
					})
					if rand.N(20) == 0 {
						wg.Go(func() { _ = s.Clear(ctx) })
					}
					wg.Wait()
					atRest(t, s)
				}
				time.Sleep(10 * ristretto.SlotWidth)
				forgotten(t, s, "when all that can die has died")
				held := int64(0)
				for key := range written {
					e := mustGet(t, s, key)
					if e == nil {
						continue
					}
					held++
					if e.UsableUntil() != tier.Never || e.Value().n != written[key].Load() {
						t.Errorf("key %d: at rest %+v, usable until %v; last write was %d", key, e.Value(), e.UsableUntil(), written[key].Load())
					}
				}
				if u := s.Usage(); u.Entries != held {
					t.Errorf("Usage = %+v, want %d entries", u, held)
				}
			})
		})
	}
}

// TestManyDieAtOnce: giving back many entries is done in parts, beside which writes
// go on, and Close ends it.
func TestManyDieAtOnce(t *testing.T) {
	n := 12_000
	if testing.Short() {
		n = 10_000
	}
	fill := func(t *testing.T) *ristretto.Store[string, int] {
		s := open(t, each[string, int](int64(10*n)))
		for i := range n {
			mustLive(t, s, fmt.Sprint("key ", i), i, ristretto.SlotWidth)
		}
		toSlotEnd()
		toSlotEnd() // now they go
		return s
	}
	t.Run("beside writes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := fill(t)
			for i := range n / 10 {
				mustSet(t, s, fmt.Sprint("key ", 10*i), -i)
			}
			forgotten(t, s, "after all")
			if u := s.Usage(); u.Entries != int64(n/10) || u.Cost != u.Entries || u.Evictions != 0 || u.Rejections != 0 {
				t.Errorf("Usage = %+v, want the %d entries written last", u, n/10)
			}
			for i := range n {
				if e := mustGet(t, s, fmt.Sprint("key ", i)); (e != nil) != (i%10 == 0) || e != nil && e.Value() != -i/10 {
					t.Fatalf("key %d: got %v", i, e)
				}
			}
		})
	})
	t.Run("and a Clear", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := fill(t)
			if err := s.Clear(ctx); err != nil {
				t.Fatal(err)
			}
			forgotten(t, s, "after Clear")
			if u := s.Usage(); u.Entries != 0 || u.Cost != 0 || u.Evictions != 0 {
				t.Errorf("Usage = %+v, want nothing held", u)
			}
		})
	})
	t.Run("and a Close", func(t *testing.T) {
		for range 5 {
			synctest.Test(t, func(t *testing.T) {
				s := fill(t)
				var wg sync.WaitGroup
				for g := range 4 {
					wg.Go(func() {
						for i := 0; ; i++ {
							key := fmt.Sprint("key ", (i*4+g)%n)
							if _, err := s.Get(ctx, key); err != nil {
								return
							}
							_ = s.Set(ctx, key, mortal(i, time.Hour), tier.Forever)
						}
					})
				}
				for range 2 {
					wg.Go(func() {
						if err := s.Close(); err != nil {
							t.Errorf("Close: %v", err)
						}
					})
				}
				wg.Wait()
				if s.Waits() {
					t.Error("after Close a timer runs")
				}
				if u := s.Usage(); u.Entries != 0 || u.Cost != 0 {
					t.Errorf("Usage = %+v, want nothing held", u)
				}
			})
		}
	})
}
