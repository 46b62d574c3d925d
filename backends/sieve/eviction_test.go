package sieve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/terracecache/terrace/backends/internal/index"
	"github.com/terracecache/terrace/tier"
)

var ctx = context.Background()

func endless[V any](value V) *tier.Entry[V] {
	return tier.NewEntry(value, tier.Meta{FreshUntil: tier.Never, UsableUntil: tier.Never})
}

// model is what a store must do, step by step.
type model interface {
	get(key int) (held bool)
	set(key int)
	delete(key int)
	clear()
	state() state
}

func stateOf(s *shard[int, int]) state {
	now := state{hand: noHand}
	t := s.rack.Load()
	items := func(q index.Queue) (all []item) {
		for p := q.Newest; p != 0; p = t.links.Older(p) {
			all = append(all, item{t.At(p).Key(), t.isVisited(p)})
		}
		return all
	}
	now.window, now.main = items(s.window), items(s.main)
	if s.hand != 0 {
		now.hand = t.At(s.hand).Key()
	}
	return now
}

// The bound on the hand is reached with the capacities above farthestHand only.
var capacities = []int{1, 2, 3, 4, 5, 9, 10, 11, 20, 21, 64, 200, 1000, farthestHand + 1, 3000}

func TestPlainSieveEvictsWhatThePaperSays(t *testing.T) {
	for _, capacity := range capacities {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			s := NewWith[int, int](Options{Capacity: capacity, Admission: Always, Shards: 1})
			r := newReference(capacity, farthestHand)
			follow(t, s, r)
			if r.gaveUp == 0 && capacity > 2*farthestHand {
				t.Error("the bound on the hand was never reached, so it was not tested")
			}
		})
	}
}

func TestFilteredSieveEvictsWhatTheModelSays(t *testing.T) {
	for _, capacity := range capacities {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			s := NewWith[int, int](Options{Capacity: capacity, Shards: 1})
			r := newFilteredReference(capacity, farthestHand, s.keys.Hash)
			follow(t, s, r)
			if capacity > 1 && (r.admitted == 0 || r.rejected == 0) {
				t.Errorf("%d contests won by the new one, %d lost: want both tested", r.admitted, r.rejected)
			}
		})
	}
}

// follow does to the store and to the model the same in random order, through phases
// that differ in how much is read, written and removed, and compares what they hold, in
// what order, with which bits and with the hand where.
func follow(t *testing.T, s *Store[int, int], m model) {
	t.Helper()
	capacity := s.shards[0].capacity
	rnd := rand.New(rand.NewPCG(7, uint64(capacity)))
	steps, each := 20_000, 1+capacity/8 // states are compared once in so many steps
	step := 0
	do := func(what string, key int) {
		t.Helper()
		switch what {
		case "get":
			get := s.Get
			if step%2 == 0 {
				get = func(ctx context.Context, key int) (*tier.Entry[int], error) {
					pair, err := s.GetPair(ctx, key)
					return pair.Entry(), err
				}
			}
			e, err := get(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := e != nil, m.get(key); got != want {
				t.Fatalf("step %d: key %d held: %v, want %v", step, key, got, want)
			}
		case "set":
			if err := s.Set(ctx, key, endless(key), tier.Forever); err != nil {
				t.Fatal(err)
			}
			m.set(key)
		case "delete":
			if err := s.Delete(ctx, key); err != nil {
				t.Fatal(err)
			}
			m.delete(key)
		case "clear":
			if err := s.Clear(ctx); err != nil {
				t.Fatal(err)
			}
			m.clear()
		}
		if step++; step%each != 0 {
			return
		}
		if err := s.check(); err != nil {
			t.Fatalf("step %d, after %s %d: %v", step, what, key, err)
		}
		if got, want := stateOf(&s.shards[0]), m.state(); !got.equal(want) {
			t.Fatalf("step %d, after %s %d:\n got %v\nwant %v", step, what, key, got, want)
		}
	}
	draw := func() int { // keys around the low ones are asked for most
		return int(float64(3*capacity+2) * rnd.Float64() * rnd.Float64())
	}
	for step < steps {
		reads, removals := rnd.IntN(90), rnd.IntN(10)
		for range min(steps/20, 10*capacity+10) {
			switch at := rnd.IntN(100); {
			case at < reads:
				do("get", draw())
			case at < reads+removals:
				do("delete", draw())
			default:
				do("set", draw())
			}
		}
		switch rnd.IntN(4) {
		case 0: // a scan
			first := rnd.IntN(1 << 30)
			for i := range capacity {
				do("set", first+i)
			}
		case 1: // all have hits
			for _, i := range append(m.state().window, m.state().main...) {
				do("get", i.key)
			}
			do("set", rnd.IntN(1<<30))
			do("set", rnd.IntN(1<<30))
		case 2: // the hand's pair, and what is next to it, go or are replaced
			for range 5 {
				if hand := m.state().hand; hand != noHand {
					do([]string{"delete", "set"}[rnd.IntN(2)], hand)
				}
				do("set", draw())
			}
		case 3:
			if rnd.IntN(5) == 0 {
				do("clear", 0)
			}
		}
	}
}
