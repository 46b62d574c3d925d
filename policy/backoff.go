package policy

import (
	"fmt"
	"time"
)

// Backoff spaces repeated tries after failures: the wait doubles from Initial to
// Max, and each wait is drawn from its upper half, so that processes that failed
// together do not try together. No wait is shorter than a millisecond.
type Backoff struct {
	// Initial is the wait after the first failure. Zero means 250 ms.
	Initial time.Duration
	// Max bounds the wait. Zero means 10 s, or Initial if that is longer.
	Max time.Duration
}

// Validate returns what is wrong with the backoff, or nil.
func (b Backoff) Validate() error {
	d := b.withDefaults()
	switch {
	case b.Initial < 0:
		return fmt.Errorf("backoff Initial %v: want zero (for %v) or more", b.Initial, d.Initial)
	case b.Max < 0:
		return fmt.Errorf("backoff Max %v: want zero (for %v) or more", b.Max, d.Max)
	case d.Max < d.Initial:
		return fmt.Errorf("backoff Max %v is below Initial %v", b.Max, d.Initial)
	}
	return nil
}

func (b Backoff) withDefaults() Backoff {
	if b.Initial == 0 {
		b.Initial = 250 * time.Millisecond
	}
	if b.Max == 0 {
		b.Max = max(10*time.Second, b.Initial)
	}
	return b
}

// Wait returns how long to wait after so many failures in a row; u, uniform in
// [0,1), draws the jitter.
func (b Backoff) Wait(failures int, u float64) time.Duration {
	b = b.withDefaults()
	wait := b.Initial
	for i := 1; i < failures && wait < b.Max; i++ {
		wait = min(2*wait, b.Max)
		if wait <= 0 {
			wait = b.Max
		}
	}
	return max(wait/2+time.Duration(u*float64(wait/2)), time.Millisecond)
}
