package lab

import (
	"math"
	"time"

	"github.com/terracecache/terrace/policy"
)

// RefreshShare returns which share of so many reads, each so long before an entry's
// end, the XFetch of the given beta would have start a refresh, as a cache asks it. A
// read at the end or after it always does. loadTime is XFetch's delta.
func RefreshShare(beta float64, before, loadTime time.Duration, draws int, seed uint64) float64 {
	x := policy.XFetch{Beta: beta, Rand: newRand(seed, forShare).Float64}
	reading := policy.Reading{FreshFor: before, StaleFor: before, LoadTime: loadTime}
	refreshes := 0
	for range draws {
		if x.Decide(reading) != policy.Serve {
			refreshes++
		}
	}
	return float64(refreshes) / float64(draws)
}

// RefreshFormula returns what RefreshShare should come to, exp(−before/(beta·loadTime)).
// It is worked out here, and not asked of the policy.
func RefreshFormula(beta float64, before, loadTime time.Duration) float64 {
	return math.Exp(-max(0, before.Seconds()) / (beta * loadTime.Seconds()))
}
