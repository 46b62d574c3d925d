package coordinator

import (
	"math"
	"time"

	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// settings are what a read needs to know beside the entry. They are replaced whole,
// so that a read costs one atomic load for all of them and sees none half changed.
type settings[K comparable, V any] struct {
	closed   bool
	top      tier.Store[K, V] // the first tier where a hit can be served from at once, else nil
	refresh  policy.Strategy
	lifetime policy.Lifetime
	limits   Limits        // none is zero
	longest  time.Duration // the longest LoadTimeout ever: loads of its time may still run

	// While an entry's end is farther than calm + calmLoads × its load time, the
	// policy only serves, whichever time within clockLag it is. calmLoads is negative
	// where the policy promises nothing.
	calm      tier.Instant
	calmLoads int64
}

const (
	// More than this is not calm, so that the arithmetic of isCalm cannot wrap round.
	maxCalm         = 1 << 60
	maxCalmLoads    = 1 << 20
	maxCalmLoadTime = 1 << 40
)

// withCalm returns the settings with what the policy promises noted.
func (s settings[K, V]) withCalm() *settings[K, V] {
	s.calmLoads = -1
	if p, ok := s.refresh.(policy.Calm); ok {
		if margin, loads := p.Calm(); margin >= 0 && margin < maxCalm && loads >= 0 && loads < maxCalmLoads {
			s.calm = tier.Instant(margin + clockLag)
			s.calmLoads = int64(math.Ceil(loads))
		}
	}
	return &s
}

// isCalm reports whether the entry is fresh, and the policy can only serve it, at the
// approximate time and for clockLag after. It is what most hits need to know, and
// costs next to nothing.
func (s *settings[K, V]) isCalm(e *tier.Entry[V], now tier.Instant) bool {
	took := e.LoadTime()
	near := now + s.calm + tier.Instant(s.calmLoads*int64(took))
	return e.FreshUntil() > near && e.UsableUntil() > near && !e.Absent() &&
		uint64(took) < maxCalmLoadTime && s.calmLoads >= 0
}

// decide says what a read at the given time does with an entry that is usable. It
// is the one place where a policy meets an entry: nothing stale is served outside
// the window that the lifetime gives (T3), whatever the policy says.
func (s *settings[K, V]) decide(e *tier.Entry[V], now tier.Instant) policy.Decision {
	fresh := e.FreshUntil().Sub(now)
	if e.Absent() {
		if fresh > 0 {
			return policy.Serve
		}
		return policy.Load
	}
	stale := min(addDurations(fresh, s.lifetime.StaleWhileRevalidate), e.UsableUntil().Sub(now))
	d := s.refresh.Decide(policy.Reading{
		Age:      now.Sub(e.LoadedAt()),
		FreshFor: fresh,
		StaleFor: stale,
		LoadTime: e.LoadTime(),
	})
	if fresh <= 0 && stale <= 0 {
		return policy.Load
	}
	return min(d, policy.Load)
}

// servesOnError reports whether a load's failure may be answered with the entry.
func (s *settings[K, V]) servesOnError(e *tier.Entry[V], now tier.Instant) bool {
	return e != nil && !e.Absent() && now < e.UsableUntil() && now < e.FreshUntil().Add(s.lifetime.StaleIfError)
}

// addDurations adds a duration of zero or more; what does not fit is Forever.
func addDurations(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= a {
		return sum
	}
	return policy.Forever
}
