package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// XFetch refreshes an entry early, at random, the more likely the nearer its end
// and the longer its load takes: a refresh starts iff
//
//	now + LoadTime·Beta·(−ln u) >= fresh-until,   u uniform in (0,1].
//
// Readers do not coordinate, in one process or over many, and yet rarely start two
// refreshes of one key; none waits as long as the key is read often enough. Past
// fresh-until it always refreshes: within the lifetime's StaleWhileRevalidate window
// in the background, else the reader waits.
//
// Source: Vattani, Chierichetti, Lowenstein, "Optimal Probabilistic Cache Stampede
// Prevention", VLDB 2015.
type XFetch struct {
	// Beta scales how early: above 1 earlier, below 1 later. Zero means 1, which the
	// paper shows to be optimal.
	Beta float64

	// Rand returns numbers uniform in [0,1) and may be called concurrently. Nil
	// means math/rand/v2.
	Rand func() float64
}

// farthestDraw is the most that a draw can reach: a float64 uniform in (0,1] of
// 2⁻⁵³ steps has −ln u <= 53·ln 2 < 37. Farther from the end no draw can refresh.
const farthestDraw = 37

// Name implements [Named].
func (XFetch) Name() string { return "xfetch" }

// Validate implements [Validator].
func (x XFetch) Validate(Lifetime) error {
	if x.Beta < 0 || math.IsNaN(x.Beta) || math.IsInf(x.Beta, 0) {
		return fmt.Errorf("xfetch beta %v: want a positive number, 1 in most cases", x.Beta)
	}
	return nil
}

// Decide implements [Strategy].
func (x XFetch) Decide(r Reading) Decision {
	if r.FreshFor <= 0 {
		if r.StaleFor > 0 {
			return Refresh
		}
		return Load
	}
	scale := float64(r.LoadTime) * x.beta()
	if float64(r.FreshFor) > farthestDraw*scale || r.FreshFor == Forever {
		return Serve
	}
	if scale*-math.Log(x.draw()) >= float64(r.FreshFor) {
		return Refresh
	}
	return Serve
}

func (x XFetch) beta() float64 {
	if x.Beta == 0 {
		return 1
	}
	return x.Beta
}

// draw returns a number uniform in (0,1]. A generator that breaks its promise gets
// the nearest number that is in range.
func (x XFetch) draw() float64 {
	f := rand.Float64
	if x.Rand != nil {
		f = x.Rand
	}
	u := 1 - f()
	if !(u > 0) {
		return 0x1p-53
	}
	return min(u, 1)
}

// Share returns the probability that one read starts a refresh, by the formula
// exp(−freshFor/(beta·loadTime)).
func (x XFetch) Share(freshFor, loadTime time.Duration) float64 {
	switch {
	case freshFor <= 0:
		return 1
	case loadTime <= 0:
		return 0
	}
	return math.Exp(-float64(freshFor) / (x.beta() * float64(loadTime)))
}
