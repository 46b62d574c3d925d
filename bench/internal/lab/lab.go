// Package lab shows what cache stampedes are made of, and what each remedy does to
// them: models of an origin, of requests and of expiring keys, and strategies that
// are caches of Terrace or the unprotected code that one would write without.
//
// Everything takes its time from package time and [tier.Now], so the same runs in
// real time and, in a bubble of testing/synctest, in virtual time.
package lab

import "math/rand/v2"

// newRand returns a generator for one purpose of a run: runs of one seed draw alike,
// and purposes independently of each other.
func newRand(seed uint64, purpose purpose) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(purpose)))
}

// purpose is what numbers are drawn for.
type purpose uint64

const (
	forArrivals purpose = iota + 1
	forOrigin
	forRefresh
	forLifetimes
	forShare
)
