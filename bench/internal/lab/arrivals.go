package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Arrivals are when requests come, at a rate and for a time, whatever becomes of those
// before them.
type Arrivals struct {
	// Kind is one of [ArrivalKinds].
	Kind string
	// Rate is requests a second.
	Rate float64
	// Length is how long they come.
	Length time.Duration
	// Seed is of what is drawn.
	Seed uint64
}

// Even and Poisson are the kinds of arrivals: one request every 1/rate seconds, from a
// start that is drawn; or requests that know nothing of each other, with gaps of an
// exponential distribution of that mean.
const (
	Even    = "even"
	Poisson = "poisson"
)

// ArrivalKinds are the kinds that there are.
var ArrivalKinds = []string{Even, Poisson}

// Validate returns what is wrong, or nil.
func (a Arrivals) Validate() error {
	switch {
	case !slices.Contains(ArrivalKinds, a.Kind):
		return fmt.Errorf("there are no %q arrivals: want %s", a.Kind, strings.Join(ArrivalKinds, " or "))
	case !(a.Rate > 0):
		return fmt.Errorf("rate %v: want more than 0", a.Rate)
	case a.Length <= 0:
		return fmt.Errorf("length %v: want more than 0", a.Length)
	}
	return nil
}

// Times returns when they come, from the start. a must be valid.
func (a Arrivals) Times() []time.Duration {
	rnd := newRand(a.Seed, forArrivals)
	var times []time.Duration
	at := rnd.Float64() // in units of 1/rate
	if a.Kind == Poisson {
		at = rnd.ExpFloat64()
	}
	for {
		t := time.Duration(at / a.Rate * float64(time.Second))
		if t >= a.Length {
			return times
		}
		times = append(times, t)
		if a.Kind == Poisson {
			at += rnd.ExpFloat64()
		} else {
			at++
		}
	}
}
