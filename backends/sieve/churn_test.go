package sieve

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/terracecache/terrace/backends/internal/memtest"
	"github.com/terracecache/terrace/tier"
)

func TestReadersUnderChurn(t *testing.T) {
	for _, o := range []Options{
		{Capacity: 8, Shards: 1},
		{Capacity: 8, Shards: 1, Admission: Always},
		{Capacity: 500, Shards: 1},
		{Capacity: 500, Shards: 4, Admission: Always},
		{Capacity: 4000, Shards: 2},
	} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			s := NewWith[int, memtest.Version](o)
			memtest.ReadersUnderChurn(t, s, o.Capacity, s.check)
		})
	}
}

// A key that is only ever updated is always found, while others in its buckets come and
// go, buckets are passed over by more than they can count, and the table grows.
func TestNoFalseMiss(t *testing.T) {
	const (
		capacity = 3000
		pinned   = 6
		rounds   = 12
	)
	// Three in four of all keys share their home with the pinned ones, so that most lie
	// far from it.
	hash := func(key int) uint64 {
		h := rand.NewPCG(uint64(key), 9).Uint64()
		if key < pinned || key%4 != 0 {
			h = h&0xffff_ffff | 0xffff_fff0<<32 // the last bucket: the way goes round the end
		}
		return h
	}
	for round := range rounds {
		var s shard[int, memtest.Version]
		s.open(capacity, Always)
		set := func(key int, n int64) {
			s.set(hash(key), tier.PairOf(key, endless(memtest.Version{Key: key, N: n})))
		}
		f := make(memtest.Floors, pinned)
		// Some are in from the start, and some when there is a crowd already.
		for key := range pinned {
			set(key, 1)
			f[key].Store(1)
		}
		var writing, reading sync.WaitGroup
		var stop atomic.Bool
		writing.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(round), 3))
			top := pinned
			for range 4000 {
				switch rnd.IntN(5) {
				case 0:
					key := pinned + rnd.IntN(top)
					s.remove(hash(key), key)
				default:
					if s.len() < capacity { // nothing is evicted: a miss would be right then
						set(top, 0)
						top++
					}
				}
			}
		})
		writing.Go(func() {
			for n := range int64(4000) {
				key := int(n) % pinned
				set(key, n+2)
				f[key].Store(n + 2)
			}
		})
		for i := range 2 {
			r := memtest.NewReader(t, f)
			reading.Go(func() {
				for n := i; !stop.Load(); n++ {
					key := n % pinned
					if !r.Read(key, func() *memtest.Version {
						pair, _ := s.rack.Load().Find(hash(key), key)
						if pair == nil {
							t.Errorf("key %d is not found, though it was only ever updated", key)
							return &memtest.Version{Key: -1}
						}
						v := pair.Entry().Value()
						return &v
					}) {
						return
					}
				}
			})
		}
		writing.Wait()
		stop.Store(true)
		reading.Wait()
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		if s.rack.Load().Room() <= firstRoom {
			t.Fatal("the table did not grow, so that was not tested")
		}
		if t.Failed() {
			return
		}
	}
}

// A reader that has seen a tag may find that its pair has gone, or that another key's
// is there instead.
func TestPairGoesUnderAReader(t *testing.T) {
	const hash = 1 << 30 // of both keys: one place for both
	var s shard[int, memtest.Version]
	s.open(10, Always)
	var writing, reading sync.WaitGroup
	var stop atomic.Bool
	f := make(memtest.Floors, 2)
	for i := range 2 {
		r := memtest.NewReader(t, f)
		reading.Go(func() {
			for !stop.Load() {
				if !r.Read(i, func() *memtest.Version {
					pair, _ := s.rack.Load().Find(hash, i)
					if pair == nil {
						return nil
					}
					v := pair.Entry().Value()
					return &v
				}) {
					return
				}
			}
		})
	}
	writing.Go(func() {
		for n := range int64(200_000) {
			key := int(n) % 2
			s.set(hash, tier.PairOf(key, endless(memtest.Version{Key: key, N: n})))
			f[key].Store(n)
			s.remove(hash, key)
			f[key].Store(n + 1)
		}
	})
	writing.Wait()
	stop.Store(true)
	reading.Wait()
}

// TestSetsOfNewKeysAtOnce: who has found nothing of a key puts in no second pair when
// another has put one in since, nor when the table has become another.
func TestSetsOfNewKeysAtOnce(t *testing.T) {
	const rounds, writers, keys = 1000, 4, 100
	for round := range rounds {
		s := NewWith[int, int](Options{Capacity: 2 * keys, Shards: 1})
		var ready, done sync.WaitGroup
		ready.Add(writers)
		for w := range writers {
			done.Go(func() {
				ready.Done()
				ready.Wait()
				for i := range keys {
					if err := s.Set(ctx, i, endless(w), tier.Forever); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		if err := s.check(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if got := s.Usage().Entries; got != keys {
			t.Fatalf("round %d: %d entries of %d keys", round, got, keys)
		}
	}
}

// A writer that is late with a rack whose pairs have moved changes nothing there: a reader
// would find the new pair in it, and then the old one in the next.
func TestRenewInARackThatHasMoved(t *testing.T) {
	const key, hash, other = 1, 1 << 40, 2
	var s shard[int, int]
	s.open(100, Filtered)
	s.set(hash, tier.PairOf(key, endless(1)))
	before := s.rack.Load()
	if found, renewed := before.renew(hash, tier.PairOf(key, endless(2))); !found || !renewed {
		t.Fatalf("renewed in a rack at rest: found %v, renewed %v", found, renewed)
	}
	s.moveTo(before, 100)
	if found, renewed := before.renew(hash, tier.PairOf(key, endless(3))); !found || renewed {
		t.Errorf("renewed in a rack that has moved: found %v, renewed %v", found, renewed)
	}
	if found, renewed := before.renew(hash, tier.PairOf(other, endless(3))); found || renewed {
		t.Errorf("a key that is not held: found %v, renewed %v", found, renewed)
	}
	for name, r := range map[string]*rack[int, int]{"old": before, "new": s.rack.Load()} {
		if pair, _ := r.Find(hash, key); pair.Entry() == nil || pair.Entry().Value() != 2 {
			t.Errorf("the %s rack holds %v, want 2", name, pair.Entry())
		}
	}
	if !s.set(hash, tier.PairOf(key, endless(4))) {
		t.Fatal("the shard is closed")
	}
	if pair, _ := s.rack.Load().Find(hash, key); pair.Entry().Value() != 4 {
		t.Errorf("after a Set: %v, want 4", pair.Entry().Value())
	}
}
