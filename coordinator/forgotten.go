package coordinator

import (
	"sync/atomic"

	"github.com/terracecache/terrace/tier"
)

// forgotten are the keys of the writes that one level lacks and that had to make room for
// others (W4): what the level holds of them from before is not trusted. Of a key no more is
// kept than when that was, in two cells that it shares with others, so that the memory is
// bounded however many there are. Another key is doubted too where both of its cells are
// newer than its entry: one in a thousand after a thousand, and only until it is loaded anew.
//
// Readers take no lock. Whoever notes a key, or looks at the bounds, has that of repeats.
type forgotten[K comparable] struct {
	keys  tier.Hasher[K]
	cells [forgottenCells]atomic.Int64

	last tier.Instant // when the last was noted
	dead atomic.Int64 // the Instant at which all that is doubted must be dead
}

// forgottenCells take 1 MiB.
const forgottenCells = 1 << 17

func newForgotten[K comparable]() *forgotten[K] {
	f := &forgotten[K]{keys: tier.NewHasher[K]()}
	for i := range f.cells {
		f.cells[i].Store(noFloor)
	}
	f.dead.Store(noFloor)
	return f
}

func (f *forgotten[K]) cellsOf(key K) (a, b *atomic.Int64) {
	h := f.keys.Hash(key)
	return &f.cells[h%forgottenCells], &f.cells[h>>32%forgottenCells]
}

// note doubts what there is of the key, which must be dead at the given time.
func (f *forgotten[K]) note(key K, now, dead tier.Instant) {
	a, b := f.cellsOf(key)
	a.Store(int64(now))
	b.Store(int64(now))
	f.last = now
	f.dead.Store(max(f.dead.Load(), int64(dead)))
}

// doubts reports whether an entry of the key may be older than a write of it that was
// forgotten.
func (f *forgotten[K]) doubts(key K, loadedAt tier.Instant) bool {
	a, b := f.cellsOf(key)
	return loadedAt <= tier.Instant(min(a.Load(), b.Load()))
}

// isOver reports whether all that is doubted must be dead.
func (f *forgotten[K]) isOver(now tier.Instant) bool { return now > tier.Instant(f.dead.Load()) }
