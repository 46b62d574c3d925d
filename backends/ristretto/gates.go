package ristretto

import (
	"sync"
	"unsafe"
)

// gates keep Close out of Ristretto while Gets are in it: its Close closes a channel
// that its Get may send on. A Get holds one gate, Close all of them.
type gates [64]gate

// gate has a pair of cache lines for itself, as they are fetched in pairs.
type gate struct {
	sync.RWMutex
	_ [104]byte
}

// enter lets a Get in by the gate for which its goroutine's stack stands: goroutines
// that run at the same time have different stacks, and cores do not contend even for
// one key. A random gate would cost as much to draw as to pass.
func (g *gates) enter() *gate {
	var here byte
	const spread = 0x9E3779B97F4A7C15 // 2^64 by the golden ratio; the upper bits are the mixed ones
	stack := uint64(uintptr(unsafe.Pointer(&here))) >> 11
	gate := &g[stack*spread>>58]
	gate.RLock()
	return gate
}

func (g *gates) lock() {
	for i := range g {
		g[i].Lock()
	}
}

func (g *gates) unlock() {
	for i := range g {
		g[i].Unlock()
	}
}
