package lru

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/terracecache/terrace/backends/internal/index"
	"github.com/terracecache/terrace/backends/internal/memtest"
	"github.com/terracecache/terrace/tier"
)

// check returns what is wrong with the shards of an LRU, where there are several. Nobody else
// may use it meanwhile.
func (s *Store[K, V]) check() error {
	var all []error
	for i, shard := range s.shards {
		if r, ok := shard.(*recent[K, V]); !ok {
			continue
		} else if err := r.check(); err != nil {
			all = append(all, fmt.Errorf("shard %d: %w", i, err))
		}
	}
	return errors.Join(all...)
}

func (s *recent[K, V]) check() error {
	t := s.rack.Load()
	if t == nil {
		if s.order.Len != 0 {
			return fmt.Errorf("closed with %d pairs", s.order.Len)
		}
		return nil
	}
	if err := s.order.Check(t.links); err != nil {
		return err
	}
	indexed, err := t.Check(func(p index.Place) uint64 { return s.hash(t.At(p).Key()) })
	switch {
	case err != nil:
		return err
	case indexed != s.order.Len:
		return fmt.Errorf("the table holds %d, order %d", indexed, s.order.Len)
	case indexed > t.Room() || t.Room() > s.capacity:
		return fmt.Errorf("the table holds %d of %d, capacity %d", indexed, t.Room(), s.capacity)
	}
	last := s.moves.Load()
	for p := s.order.Newest; p != 0; p = t.links.Older(p) {
		pair := t.At(p)
		if pair == nil {
			return fmt.Errorf("place %d is in the order, and empty", p)
		}
		if found, place := t.Find(s.hash(pair.Key()), pair.Key()); found != pair || place != p {
			return fmt.Errorf("%v is in the order, but the table gives %p at %d, not %p at %d", pair.Key(), found, place, pair, p)
		}
		moved := t.usesOf(p).movedAt.Load()
		if int32(moved-last) > 0 { // it may wrap around
			return fmt.Errorf("%v moved at %d, the one before it at %d", pair.Key(), moved, last)
		}
		last = moved
	}
	return nil
}

func intPair(key, v int) *tier.Pair[int, int] {
	return tier.NewPair(key, v, tier.Meta{UsableUntil: 1 << 62})
}

func hash(key int) uint64 { return rand.NewPCG(uint64(key), 1).Uint64() }

// In a full shard an entry that had a hit outlives seven in eight of what may come.
func TestHitKeepsAnEntry(t *testing.T) {
	const capacity = 800
	s := newRecent[int, int](capacity, hash)
	next := 0
	add := func(n int) {
		for range n {
			s.set(hash(next), intPair(next, next))
			next++
		}
	}
	add(capacity)
	for _, key := range []int{0, 1, 350, 699} {
		if e, _ := s.get(hash(key), key); e == nil {
			t.Fatalf("key %d of a shard that holds %d is not held", key, capacity)
		}
	}
	add(capacity*7/8 - 1)
	for _, key := range []int{0, 1, 350, 699} {
		if e, _ := s.get(hash(key), key); e == nil {
			t.Errorf("key %d had a hit, and is evicted after %d others came", key, capacity*7/8-1)
		}
	}
	if e, _ := s.get(hash(2), 2); e != nil {
		t.Errorf("key 2 had no hit, and is held when %d others came", capacity*7/8-1)
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
}

// What is near the front stays where it is, so that hits change nothing that all cores
// read.
func TestHitNearTheFrontMovesNothing(t *testing.T) {
	const capacity = 800
	for _, held := range []int{100, capacity*3/4 - 1, capacity, 3 * capacity} {
		s := newRecent[int, int](capacity, hash)
		for key := range held {
			s.set(hash(key), intPair(key, key))
		}
		before := s.moves.Load()
		from := held - capacity/frontShare
		if held < capacity*3/4 {
			from = 0
		}
		for range 3 {
			for key := from; key < held; key++ {
				if e, _ := s.get(hash(key), key); e == nil {
					t.Fatalf("%d of %d: key %d is not held", held, capacity, key)
				}
			}
		}
		if got := s.moves.Load() - before; got != 0 {
			t.Errorf("%d of %d: %d moves for hits near the front, want none", held, capacity, got)
		}
	}
}

// Hits of a shard with much room move nothing, but are not forgotten when it has filled up, or
// has to do with less.
func TestHitsOfAShardWithRoomAreRemembered(t *testing.T) {
	const capacity, inUse = 800, 100
	for _, held := range []int{inUse, capacity / 2, capacity*3/4 - 1, capacity - 1} {
		for name, squeeze := range map[string]func(s *recent[int, int]){
			"others come": func(s *recent[int, int]) {
				for key := held; key < held+capacity-inUse; key++ {
					s.set(hash(key), intPair(key, key))
				}
			},
			"resized": func(s *recent[int, int]) { s.resize(inUse) },
		} {
			s := newRecent[int, int](capacity, hash)
			for key := range held {
				s.set(hash(key), intPair(key, key))
			}
			for key := range inUse {
				if e, _ := s.get(hash(key), key); e == nil {
					t.Fatalf("%d of %d: key %d is not held", held, capacity, key)
				}
			}
			squeeze(s)
			for key := range inUse {
				if e, _ := s.get(hash(key), key); e == nil {
					t.Errorf("%d of %d, then %s: key %d had a hit, and is evicted before those that had none", held, capacity, name, key)
					break
				}
			}
			if err := s.check(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Marks of the time when there was room do not outweigh later use for long.
func TestMarksAreRedeemedWhileItFillsUp(t *testing.T) {
	const capacity, marked = 800, 598
	s := newRecent[int, int](capacity, hash)
	for key := range capacity + 200 {
		s.set(hash(key), intPair(key, key))
		if key < capacity {
			s.get(hash(key), key)
		}
	}
	left := 0
	for key := marked; key < capacity; key++ {
		if pair, _ := s.rack.Load().Find(hash(key), key); pair != nil {
			left++
		}
	}
	if want := (capacity - marked) * 3 / 4; left < want { // all of them in the exact order
		t.Errorf("%d of %d newcomers that were used are left, want %d or more", left, capacity-marked, want)
	}
}

// A hit that finds the lock taken does not wait, and counts all the same.
func TestHitBesideAWriterIsRemembered(t *testing.T) {
	const capacity = 800
	s := newRecent[int, int](capacity, hash)
	for key := range capacity {
		s.set(hash(key), intPair(key, key))
	}
	s.mu.Lock()
	if e, _ := s.get(hash(0), 0); e == nil {
		t.Error("key 0 is not held")
	}
	s.mu.Unlock()
	for key := capacity; key < capacity+10; key++ {
		s.set(hash(key), intPair(key, key))
	}
	if e, _ := s.get(hash(0), 0); e == nil {
		t.Error("key 0 had a hit beside a writer, and is evicted as if it had none")
	}
	if e, _ := s.get(hash(1), 1); e != nil {
		t.Error("key 1 had no hit, and is held")
	}
}

// Where all are marked as used, one has to go all the same.
func TestAllAreMarked(t *testing.T) {
	const capacity = 3 * sparedByEviction
	s := newRecent[int, int](capacity, hash)
	for key := range capacity {
		s.set(hash(key), intPair(key, key))
	}
	for t, p := s.rack.Load(), s.order.Newest; p != 0; p = t.links.Older(p) {
		t.usesOf(p).use()
	}
	for key := capacity; key < 2*capacity; key++ {
		s.set(hash(key), intPair(key, key))
	}
	if held, _, evicted := s.usage(); held != capacity || evicted != capacity {
		t.Errorf("%d held, %d evicted, want %d of each", held, evicted, capacity)
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
}

// A hit may find an entry just before it goes. It must not come back into the order.
func TestHitOfAPairThatHasGone(t *testing.T) {
	const capacity = 100
	for name, gone := range map[string]func(s *recent[int, int]){
		"removed":  func(s *recent[int, int]) { s.remove(hash(0), 0) },
		"cleared":  func(s *recent[int, int]) { s.clear() },
		"closed":   func(s *recent[int, int]) { s.close() },
		"evicted":  func(s *recent[int, int]) { s.resize(1) },
		"replaced": func(s *recent[int, int]) { s.remove(hash(0), 0); s.set(hash(0), intPair(0, 1)) },
	} {
		s := newRecent[int, int](capacity, hash)
		for key := range capacity {
			s.set(hash(key), intPair(key, key))
		}
		t1 := s.rack.Load()
		_, p := t1.Find(hash(0), 0)
		gone(s)
		for range 2 {
			s.moveUp(t1, hash(0), 0, p)
		}
		if err := s.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A key that went may be back in another place, and its first one be free.
func TestHitOfAPairThatIsElsewhere(t *testing.T) {
	collide := func(int) uint64 { return 0 }
	s := newRecent[int, int](100, collide)
	for key := range 5 {
		s.set(0, intPair(key, key))
	}
	rack := s.rack.Load()
	_, p := rack.Find(0, 2)
	s.remove(0, 2)
	s.set(0, intPair(5, 5))
	s.set(0, intPair(2, 2))
	s.remove(0, 5)
	if pair, now := rack.Find(0, 2); pair == nil || now == p {
		t.Fatalf("the key is in place %d, was in %d", now, p)
	}
	s.slack.Store(0) // the next move is due
	s.moveUp(rack, 0, 2, p)
	if err := s.check(); err != nil {
		t.Error(err)
	}
}

// What is known of an entry's use goes with it when the shard grows.
func TestGrowthKeepsWhatIsKnownOfUse(t *testing.T) {
	type use struct {
		movedAt uint32
		used    bool
	}
	s := newRecent[int, int](1000, hash)
	uses := func() map[int]use {
		of := make(map[int]use)
		rack := s.rack.Load()
		rack.Each(func(p index.Place) {
			u := rack.usesOf(p)
			of[rack.At(p).Key()] = use{u.movedAt.Load(), u.used.Load()}
		})
		return of
	}
	for key := range firstRoom {
		s.set(hash(key), intPair(key, key))
	}
	for key := 0; key < firstRoom; key += 3 {
		s.get(hash(key), key)
	}
	before, was := uses(), s.rack.Load()
	s.set(hash(firstRoom), intPair(firstRoom, 0))
	if s.rack.Load() == was {
		t.Fatal("the shard has not grown")
	}
	after := uses()
	for key, want := range before {
		if after[key] != want || want.used != (key%3 == 0) {
			t.Errorf("key %d: %+v, before %+v", key, after[key], want)
		}
	}
}

// A hit may be late with a rack whose pairs have moved: its place is another's in the next.
func TestHitInARackThatHasMoved(t *testing.T) {
	s := newRecent[int, int](100, hash)
	for key := range 100 {
		s.set(hash(key), intPair(key, key))
	}
	before := s.rack.Load()
	_, p := before.Find(hash(60), 60)
	s.resize(50)
	if pair, _ := s.rack.Load().Find(hash(60), 60); pair == nil || s.rack.Load() == before {
		t.Fatal("the key is not in another rack")
	}
	for range 2 {
		s.moveUp(before, hash(60), 60, p)
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
}

func TestSetOfAHeldKeyDoesNotAllocate(t *testing.T) {
	s := newRecent[int, int](100, hash)
	for key := range 100 {
		s.set(hash(key), intPair(key, key))
	}
	pair, first := intPair(0, 7), hash(0)
	if got := testing.AllocsPerRun(100, func() { s.set(first, pair) }); got != 0 {
		t.Errorf("%v objects for a Set of a held key", got)
	}
}

func TestReadersUnderChurn(t *testing.T) {
	for _, o := range []Options{
		{Capacity: 8, Shards: 1},
		{Capacity: 8, Shards: 2},
		{Capacity: 9, Shards: 3},
		{Capacity: 500, Shards: 2},
		{Capacity: 4000, Shards: 2},
	} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			s := NewWith[int, memtest.Version](o)
			memtest.ReadersUnderChurn(t, s, o.Capacity, s.check)
		})
	}
}
