package memtest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/terracecache/terrace/tier"
)

// Floors has for each key the version of the last write that returned: what a Get that
// begins afterwards must not be behind.
type Floors []atomic.Int64

// Reader checks what one goroutine reads.
type Reader struct {
	t      *testing.T
	floors Floors
	seen   []int64 // by this goroutine, which must not go back either
	found  *atomic.Int64
}

// NewReader makes a reader for keys from 0 to len(f).
func NewReader(t *testing.T, f Floors) *Reader {
	return &Reader{t: t, floors: f, seen: make([]int64, len(f)), found: new(atomic.Int64)}
}

// Read does a Get of the key and reports whether all was right.
func (r *Reader) Read(key int, get func() *Version) (ok bool) {
	floor := max(r.floors[key].Load(), r.seen[key])
	got := get()
	switch {
	case got == nil:
		return true
	case got.Key != key:
		r.t.Errorf("key %d: got the value of key %d", key, got.Key)
		return false
	case got.N < floor:
		r.t.Errorf("key %d: got version %d, older than %d, which was written or read before", key, got.N, floor)
		return false
	}
	r.seen[key] = got.N
	r.found.Add(1)
	return true
}

// ReadersUnderChurn has one writer for each key set it and delete it, with versions that
// grow; others evict, clear, and so let the store grow anew. Readers see no value of
// another key and none that is older than what was written, or read, before they asked.
// At the end check tells what is wrong with the store.
func ReadersUnderChurn(t *testing.T, s Store[int, Version], capacity int, check func() error) {
	clearer, ok := tier.AsClearer(s)
	if !ok {
		t.Fatal("the store cannot be cleared")
	}
	const writers, steps = 2, 20_000
	keys := 2 * capacity
	f := make(Floors, keys)
	readers := []*Reader{NewReader(t, f), NewReader(t, f)}
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
					err = s.Set(ctx, key, endless(Version{key, int64(n + 1)}), tier.Forever)
				}
				if err != nil {
					t.Error(err)
					return
				}
				// After a Delete, and a Clear, what it removed is too old as well.
				f[key].Store(int64(n + 1))
				if rnd.IntN(4*capacity) == 0 {
					if err := clearer.Clear(ctx); err != nil {
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
				if !r.Read(key, func() *Version {
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
	if err := check(); err != nil {
		t.Error(err)
	}
	for i, r := range readers {
		if got := r.found.Load(); got <= 1000 {
			t.Errorf("reader %d found something %d times only: nothing was tested", i, got)
		}
	}
}
