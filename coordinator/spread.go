package coordinator

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// spread is some counters of which each exists several times, and a goroutine mostly meets
// the same copy, so that cores do not write one cache line. What a counter has come to is
// the sum of its copies.
type spread struct {
	cells  []atomic.Uint64
	stride int // cells between one copy and the next, a multiple of a cache line
	copies int // a power of two
}

const lineCells = 128 / 8 // two lines, as the prefetcher takes them in pairs

func newSpread(counters int) spread {
	copies := 16 // which makes it rare that those who run at a time meet
	for copies < 8*runtime.GOMAXPROCS(0) && copies < 256 {
		copies *= 2
	}
	stride := (counters + lineCells - 1) / lineCells * lineCells
	return spread{cells: make([]atomic.Uint64, (copies+1)*stride), stride: stride, copies: copies}
}

// here returns this goroutine's copy of the counter.
func (s *spread) here(counter int) *atomic.Uint64 {
	// A goroutine's stack stays where it is for long, and two goroutines' stacks are
	// apart: its address tells goroutines apart at no cost.
	var here byte
	h := uint64(uintptr(unsafe.Pointer(&here))) >> 11 * 0x9E3779B97F4A7C15
	i := int(h>>32) & (s.copies - 1)
	return &s.cells[i*s.stride+counter]
}

func (s *spread) sum(counter int) uint64 {
	var n uint64
	for i := range s.copies {
		n += s.cells[i*s.stride+counter].Load()
	}
	return n
}
