package sieve

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/terracecache/terrace/tier"
)

// version is a value that says whose it is, and how new.
type version struct {
	key int
	n   int64
}

// floors has for each key the version of the last write that returned: what a Get that
// begins afterwards must not be behind.
type floors []atomic.Int64

// reader checks what one goroutine reads.
type reader struct {
	t      *testing.T
	floors floors
	seen   []int64 // by this goroutine, which must not go back either
	found  *atomic.Int64
}

func newReader(t *testing.T, f floors) *reader {
	return &reader{t: t, floors: f, seen: make([]int64, len(f)), found: new(atomic.Int64)}
}

// read does a Get of the key and reports whether all was right.
func (r *reader) read(key int, get func() *version) (ok bool) {
	floor := max(r.floors[key].Load(), r.seen[key])
	got := get()
	switch {
	case got == nil:
		return true
	case got.key != key:
		r.t.Errorf("key %d: got the value of key %d", key, got.key)
		return false
	case got.n < floor:
		r.t.Errorf("key %d: got version %d, older than %d, which was written or read before", key, got.n, floor)
		return false
	}
	r.seen[key] = got.n
	r.found.Add(1)
	return true
}

// One writer for each key sets it and deletes it, with versions that grow; others
// evict, clear, and so let the table grow anew. Readers see no value of another key and
// none that is older than what was written, or read, before they asked.
func TestReadersUnderChurn(t *testing.T) {
	for _, o := range []Options{
		{Capacity: 8, Shards: 1},
		{Capacity: 8, Shards: 1, Admission: Always},
		{Capacity: 500, Shards: 1},
		{Capacity: 500, Shards: 4, Admission: Always},
		{Capacity: 4000, Shards: 2},
	} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			const writers, steps = 2, 20_000
			keys := 2 * o.Capacity
			s := NewWith[int, version](o)
			f := make(floors, keys)
			readers := []*reader{newReader(t, f), newReader(t, f)}
			// The scheduler may let the readers begin late.
			enough := func(n int) bool {
				return n >= 1000*steps || n >= steps && readers[0].found.Load() > 1000 && readers[1].found.Load() > 1000
			}
			var writing, reading sync.WaitGroup
			var stop atomic.Bool
			for w := range writers {
				writing.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(w), 1))
					for n := 0; !enough(n); n++ {
						key := rnd.IntN(keys/writers)*writers + w
						var err error
						if rnd.IntN(4) == 0 {
							err = s.Delete(ctx, key)
						} else {
							err = s.Set(ctx, key, endless(version{key, int64(n + 1)}), tier.Forever)
						}
						if err != nil {
							t.Error(err)
							return
						}
						// After a Delete, and a Clear, what it removed is too old as well.
						f[key].Store(int64(n + 1))
						if rnd.IntN(4*o.Capacity) == 0 {
							if err := s.Clear(ctx); err != nil {
								t.Error(err)
							}
							for key := w; key < keys; key += writers {
								f[key].Store(int64(n + 2))
							}
						}
					}
				})
			}
			for i, r := range readers {
				reading.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(i), 2))
					for !stop.Load() {
						key := rnd.IntN(keys)
						if !r.read(key, func() *version {
							e, err := s.Get(ctx, key)
							if err != nil {
								t.Error(err)
							}
							if e == nil {
								return nil
							}
							v := e.Value()
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
				t.Error(err)
			}
			for i, r := range readers {
				if got := r.found.Load(); got <= 1000 {
					t.Errorf("reader %d found something %d times only: nothing was tested", i, got)
				}
			}
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
		var s shard[int, version]
		s.open(capacity, Always)
		set := func(key int, n int64) {
			s.set(&node[int, version]{key: key, hash: hash(key), entry: *endless(version{key, n})})
		}
		f := make(floors, pinned)
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
			r := newReader(t, f)
			reading.Go(func() {
				for n := i; !stop.Load(); n++ {
					key := n % pinned
					if !r.read(key, func() *version {
						n, _, _ := s.table.Load().find(hash(key), key)
						if n == nil {
							t.Errorf("key %d is not found, though it was only ever updated", key)
							return &version{key: -1}
						}
						v := n.entry.Value()
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
		if s.table.Load().room <= firstRoom {
			t.Fatal("the table did not grow, so that was not tested")
		}
		if t.Failed() {
			return
		}
	}
}

// A reader that has seen a tag may find that its node has gone, or that another key's
// is there instead.
func TestNodeGoesUnderAReader(t *testing.T) {
	const hash = 1 << 30 // of both keys: one place for both
	var s shard[int, version]
	s.open(10, Always)
	var writing, reading sync.WaitGroup
	var stop atomic.Bool
	f := make(floors, 2)
	for i := range 2 {
		r := newReader(t, f)
		reading.Go(func() {
			for !stop.Load() {
				if !r.read(i, func() *version {
					n, _, _ := s.table.Load().find(hash, i)
					if n == nil {
						return nil
					}
					v := n.entry.Value()
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
			s.set(&node[int, version]{key: key, hash: hash, entry: *endless(version{key, n})})
			f[key].Store(n)
			s.remove(hash, key)
			f[key].Store(n + 1)
		}
	})
	writing.Wait()
	stop.Store(true)
	reading.Wait()
}
