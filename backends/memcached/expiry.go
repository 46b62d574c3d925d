package memcached

import (
	"math"
	"time"

	"github.com/terracecache/terrace/tier"
)

const (
	// maxRelative is the longest time in seconds that memcached takes as such; more it
	// takes for a Unix time.
	maxRelative = 30 * 24 * 60 * 60

	// expired is an expiration that has passed.
	expired = -1
)

// expiration turns a ttl above zero into memcached's: zero for none, seconds up to 30
// days, a Unix time beyond. Relative where it can be, since the server's clock may
// not agree with ours.
//
// It rounds up, and adds a second: the server counts the ticks of its clock, so that
// one second is over at the next tick, which may come at once.
func expiration(ttl time.Duration, now time.Time) int32 {
	if ttl == tier.Forever {
		return 0
	}
	seconds := int64(ttl/time.Second) + 1
	if ttl%time.Second != 0 {
		seconds++
	}
	if seconds <= maxRelative {
		return int32(seconds)
	}
	if last := int64(math.MaxInt32); now.Unix()+seconds > last {
		// A later Unix time does not fit, and would be taken for the past.
		if last-now.Unix() < maxRelative {
			return maxRelative
		}
		return math.MaxInt32
	}
	return int32(now.Unix() + seconds)
}
