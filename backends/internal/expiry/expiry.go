// Package expiry tells stores in memory when an entry's time in them ends.
package expiry

import (
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Clock spares a store most looks at the clock when entries are stored. The zero
// Clock may be used, also concurrently.
type Clock struct {
	seen atomic.Int64 // a time in the past: when the clock was last looked at
}

// Until returns when the entry's time ends if it is stored now for ttl, or
// [tier.Never] when that is not before the entry's own end.
func (c *Clock) Until(usable tier.Instant, ttl time.Duration) tier.Instant {
	// If ttl counted from a time in the past does not cut the entry's life, it does
	// not counted from now.
	if seen := tier.Instant(c.seen.Load()); ttl == tier.Forever || seen != 0 && seen.Add(ttl) >= usable {
		return tier.Never
	}
	now := tier.Now()
	c.seen.Store(int64(now))
	return now.Add(ttl)
}
