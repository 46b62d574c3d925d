package policy

import (
	"fmt"
	"math"
	"time"
)

// Forever is the duration that does not end. A TTL of Forever means that entries
// stay fresh until they are evicted or invalidated; zero never means that.
const Forever time.Duration = math.MaxInt64

// Lifetime says how long entries live.
type Lifetime struct {
	// TTL is how long an entry is fresh, counted from when its load began. It must
	// be set: a positive duration, or [Forever].
	TTL time.Duration

	// Jitter is the share by which each entry's TTL varies at random, so that
	// entries stored together do not end together: 0.1 gives 90 % to 110 %. At least 0,
	// below 1.
	Jitter float64

	// StaleWhileRevalidate is how long past fresh an entry may be served while a
	// load in the background replaces it, under a strategy that does so.
	StaleWhileRevalidate time.Duration

	// StaleIfError is how long past fresh an entry may be served when a load fails
	// (RFC 5861, section 4).
	StaleIfError time.Duration

	// Absent is how long the answer "there is none" is kept; seconds, not minutes.
	// Zero: not at all. Absences have no stale windows.
	Absent time.Duration
}

// Validate returns what is wrong with the lifetime, or nil.
func (l Lifetime) Validate() error {
	switch {
	case l.TTL == 0:
		return fmt.Errorf("lifetime TTL is not set: give a positive duration, or policy.Forever")
	case l.TTL < 0:
		return fmt.Errorf("lifetime TTL %v: want a positive duration, or policy.Forever", l.TTL)
	case !(l.Jitter >= 0 && l.Jitter < 1):
		return fmt.Errorf("lifetime Jitter %v: want a share of at least 0 and below 1, such as 0.1", l.Jitter)
	case l.StaleWhileRevalidate < 0:
		return fmt.Errorf("lifetime StaleWhileRevalidate %v: want zero or more", l.StaleWhileRevalidate)
	case l.StaleIfError < 0:
		return fmt.Errorf("lifetime StaleIfError %v: want zero or more", l.StaleIfError)
	case l.Absent < 0:
		return fmt.Errorf("lifetime Absent %v: want zero or more", l.Absent)
	}
	return nil
}

// Life is the life of one entry, counted from when its load began.
type Life struct {
	// Fresh is how long it is fresh.
	Fresh time.Duration
	// Usable is how long it may be served at all; at least Fresh.
	Usable time.Duration
}

// Value returns the life of an entry with a value. A ttl above zero takes the place
// of the lifetime's TTL; u, uniform in [0,1), draws the jitter.
func (l Lifetime) Value(ttl time.Duration, u float64) Life {
	if ttl <= 0 {
		ttl = l.TTL
	}
	fresh := l.jittered(ttl, u)
	return Life{Fresh: fresh, Usable: add(fresh, max(l.StaleWhileRevalidate, l.StaleIfError))}
}

// Absence returns the life of an absent entry, or false when absences are not kept.
// A ttl above zero takes the place of the lifetime's Absent.
func (l Lifetime) Absence(ttl time.Duration, u float64) (Life, bool) {
	if ttl <= 0 {
		ttl = l.Absent
	}
	if ttl <= 0 {
		return Life{}, false
	}
	fresh := l.jittered(ttl, u)
	return Life{Fresh: fresh, Usable: fresh}, true
}

// Longest returns the longest life that an entry can get.
func (l Lifetime) Longest() time.Duration {
	longest := max(l.Value(0, math.Nextafter(1, 0)).Usable, l.jittered(l.Absent, math.Nextafter(1, 0)))
	return longest
}

func (l Lifetime) jittered(d time.Duration, u float64) time.Duration {
	if d == Forever || l.Jitter == 0 {
		return d
	}
	f := float64(d) * (1 + l.Jitter*(2*u-1))
	if f >= math.MaxInt64 {
		return Forever
	}
	return max(1, time.Duration(f))
}

// add adds two durations of zero or more; what does not fit is Forever.
func add(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= a {
		return sum
	}
	return Forever
}
