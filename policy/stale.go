package policy

import "errors"

// StaleWhileRevalidate serves an entry while it is fresh, and for the lifetime's
// StaleWhileRevalidate window longer while one load in the background replaces it
// (RFC 5861, section 3). No reader waits as long as the key is read at least once
// in the window.
type StaleWhileRevalidate struct{}

// Name implements [Named].
func (StaleWhileRevalidate) Name() string { return "swr" }

// Validate implements [Validator].
func (StaleWhileRevalidate) Validate(l Lifetime) error {
	if l.StaleWhileRevalidate <= 0 {
		return errors.New("stale-while-revalidate needs a lifetime with a StaleWhileRevalidate window; without one it is the fixed policy")
	}
	return nil
}

// Decide implements [Strategy].
func (StaleWhileRevalidate) Decide(r Reading) Decision {
	switch {
	case r.FreshFor > 0:
		return Serve
	case r.StaleFor > 0:
		return Refresh
	default:
		return Load
	}
}
