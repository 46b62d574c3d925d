package coordinator

import (
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
