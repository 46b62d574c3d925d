// Package seeding lets replays in the lab hash keys alike in every run, so that a seed gives
// the same figures again. It is internal to Terrace because whoever knows how a store hashes
// can choose keys that crowd one part of it.
package seeding

import (
	"sync"
	"sync/atomic"
)

var (
	one  sync.Mutex
	seed atomic.Pointer[uint64]
)

// Do calls open. Hashers of numbers that are made meanwhile, by whomever, have the seed for
// life.
func Do(with uint64, open func()) {
	one.Lock()
	defer one.Unlock()
	seed.Store(&with)
	defer seed.Store(nil)
	open()
}

// Seed returns the seed that a hasher which is made now is to have, and whether there is one.
func Seed() (s uint64, given bool) {
	if p := seed.Load(); p != nil {
		return *p, true
	}
	return 0, false
}
