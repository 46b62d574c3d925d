package coordinator

import (
	"errors"
	"fmt"

	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// Change is what [Cache.Reconfigure] can change while a cache works. What is nil
// stays as it is.
type Change struct {
	// Refresh replaces the refresh policy.
	Refresh policy.Strategy
	// Lifetime replaces the lifetime.
	Lifetime *policy.Lifetime
	// Limits replace all limits; zero means the default, as in Options.
	Limits *Limits
}

// Reconfigure changes settings while the cache works: all that the change names at
// once, or, with an error that says what is wrong, nothing. Entries, flights and
// statistics stay.
//
// Reads that begin later follow the policy; entries stored from now on live by the
// lifetime, whose StaleWhileRevalidate window counts for those at hand too as far as
// they are usable. Loads that begin later have the new LoadTimeout. A limit below what
// is under way lets nothing more in until that is less.
func (c *Cache[K, V]) Reconfigure(ch Change) error {
	return c.change(func(now *settings[K, V]) error {
		if err := ch.applyTo(&now.refresh, &now.lifetime, &now.limits); err != nil {
			return fmt.Errorf("terrace: cache %q: %w", c.name, err)
		}
		if ch.Lifetime != nil {
			c.noteLife(now.lifetime.Longest())
		}
		if ch.Limits != nil {
			now.longest = max(now.longest, now.limits.LoadTimeout)
			c.enforce(now.limits)
		}
		return nil
	})
}

// CheckChange returns what [Cache.Reconfigure] would refuse in the change, or nil.
func (c *Cache[K, V]) CheckChange(ch Change) error {
	now := *c.settings.Load()
	if now.closed {
		return ErrClosed
	}
	if err := ch.applyTo(&now.refresh, &now.lifetime, &now.limits); err != nil {
		return fmt.Errorf("terrace: cache %q: %w", c.name, err)
	}
	return nil
}

// SetPolicy is [Cache.Reconfigure] of the refresh policy alone; nil means
// [policy.Fixed].
func (c *Cache[K, V]) SetPolicy(s policy.Strategy) error {
	if s == nil {
		s = policy.Fixed{}
	}
	return c.Reconfigure(Change{Refresh: s})
}

// SetLifetime is [Cache.Reconfigure] of the lifetime alone.
func (c *Cache[K, V]) SetLifetime(l policy.Lifetime) error {
	return c.Reconfigure(Change{Lifetime: &l})
}

// Resize changes the capacity of a tier's store, in the store's own unit (entries, or
// cost), without losing what there is room for. An error that is a
// [tier.ErrNotResizable] tells that the store cannot do that; nothing is changed with
// any error.
func (c *Cache[K, V]) Resize(tierName string, capacity int64) error {
	if !c.life.begin() {
		return ErrClosed
	}
	defer c.life.end()
	for _, l := range c.levels {
		if l.name != tierName {
			continue
		}
		r, ok := tier.AsResizer(l.given)
		err := tier.ErrNotResizable
		if ok {
			err = r.Resize(capacity)
		}
		if err != nil {
			return &TierError{Tier: l.name, Op: "resize", Err: err}
		}
		return nil
	}
	return fmt.Errorf("terrace: cache %q: resize: there is no tier %q", c.name, tierName)
}

// applyTo puts the change into settings, or returns all that is wrong with it.
func (ch Change) applyTo(refresh *policy.Strategy, lifetime *policy.Lifetime, limits *Limits) error {
	var errs []error
	if ch.Refresh != nil {
		*refresh = ch.Refresh
	}
	if ch.Lifetime != nil {
		*lifetime = *ch.Lifetime
		errs = append(errs, lifetime.Validate())
	}
	if ch.Limits != nil {
		*limits = ch.Limits.withDefaults()
		errs = append(errs, ch.Limits.validate())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return validatePolicy(*refresh, *lifetime)
}

// change replaces the settings by a changed copy.
func (c *Cache[K, V]) change(edit func(*settings[K, V]) error) error {
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	next := *c.settings.Load()
	if next.closed {
		return ErrClosed
	}
	if err := edit(&next); err != nil {
		return err
	}
	c.settings.Store(next.withCalm())
	return nil
}

// enforce tells those who keep limits of new ones.
func (c *Cache[K, V]) enforce(l Limits) {
	c.flights.resize(l.Flights)
	c.loads.resize(l.mostLoads())
	c.background.resize(l.Background)
	c.cooldowns.resize(l.LoadTimeout)
	for _, level := range c.levels {
		level.repeats.resize(l.Recovery)
	}
}
