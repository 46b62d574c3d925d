package tier

import (
	"math"
	"time"
)

// Instant is a point on this process's monotonic clock, in nanoseconds from an
// arbitrary origin. A step of the wall clock does not move it, so it says nothing
// outside the process: what crosses a process boundary is converted (see
// docs/wire-format.md).
type Instant int64

// Never is the Instant that does not come.
const Never Instant = math.MaxInt64

// Forever is the duration that does not end. A time to live of Forever means no
// expiry; zero never does.
const Forever time.Duration = math.MaxInt64

var origin = time.Now()

// Now reads the monotonic clock. Inside a testing/synctest bubble it reads the
// bubble's clock.
func Now() Instant { return Instant(time.Since(origin)) }

// Add returns i+d, held at Never and at the earliest Instant instead of wrapping
// round. Never plus anything is Never, and anything plus Forever is Never.
func (i Instant) Add(d time.Duration) Instant {
	if i == Never || d == Forever {
		return Never
	}
	sum := i + Instant(d)
	if d > 0 && sum < i {
		return Never
	}
	if d < 0 && sum > i {
		return math.MinInt64
	}
	return sum
}

// Sub returns the duration i-j, held at the range of time.Duration instead of
// wrapping round. Never minus anything is Forever.
func (i Instant) Sub(j Instant) time.Duration {
	if i == Never {
		return Forever
	}
	diff := time.Duration(i - j)
	if i > j && diff < 0 {
		return Forever
	}
	if i < j && diff > 0 {
		return math.MinInt64
	}
	return diff
}
