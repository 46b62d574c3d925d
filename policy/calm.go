package policy

import "time"

// Calm is implemented by a strategy that only ever decides [Serve] while an entry's
// end is far. A cache then spares most reads the call of Decide, and a look at the
// exact time.
type Calm interface {
	// Calm tells how far: Decide returns Serve whenever the reading's FreshFor is
	// more than margin + loads × LoadTime. Neither is negative.
	Calm() (margin time.Duration, loads float64)
}

// Calm implements [Calm].
func (Fixed) Calm() (margin time.Duration, loads float64) { return 0, 0 }

// Calm implements [Calm].
func (StaleWhileRevalidate) Calm() (margin time.Duration, loads float64) { return 0, 0 }

// Calm implements [Calm]: beyond 37 times LoadTime·Beta no draw can refresh.
func (x XFetch) Calm() (margin time.Duration, loads float64) { return 0, farthestDraw * x.beta() }
