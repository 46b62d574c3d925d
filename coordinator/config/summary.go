package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// summary tells in a line what a cache would run.
func (c *cacheSpec) summary(name string) string {
	tiers := make([]string, len(c.Tiers))
	for i := range c.Tiers {
		tiers[i] = c.Tiers[i].summary()
	}
	l := &c.Lifetime
	parts := []string{"ttl " + l.TTL.show()}
	if l.Jitter.f > 0 {
		parts[0] += " ± " + l.Jitter.show()
	}
	for label, d := range orderedDurations(l) {
		if d.Duration > 0 {
			parts = append(parts, label+" "+d.show())
		}
	}
	refresh := "fixed"
	if c.Refresh.Policy != "" {
		refresh = string(c.Refresh.Policy)
	}
	if c.Refresh.Policy == "xfetch" {
		beta := "1"
		if c.Refresh.Beta.given {
			beta = c.Refresh.Beta.show()
		}
		refresh += " (beta " + beta + ")"
	}
	return fmt.Sprintf("%s: %s; %s; refresh %s", name, strings.Join(tiers, " → "), strings.Join(parts, ", "), refresh)
}

func orderedDurations(l *lifetimeSpec) func(func(string, *duration) bool) {
	return func(yield func(string, *duration) bool) {
		_ = yield("stale while revalidate", &l.StaleWhileRevalidate) &&
			yield("stale if error", &l.StaleIfError) &&
			yield("absent", &l.Absent)
	}
}

func (t *tierSpec) summary() string {
	s := string(t.Name) + " " + string(t.Backend)
	var parts []string
	if t.Capacity.given() {
		parts = append(parts, t.eviction())
		if t.Capacity.entries > 0 {
			parts = append(parts, t.Capacity.show()+" entries")
		} else {
			parts = append(parts, t.Capacity.show())
		}
	}
	if t.Codec != "" {
		parts = append(parts, string(t.Codec))
	}
	if a := t.Compression.Algorithm; a != "" && a != "none" {
		parts = append(parts, string(a))
	}
	if t.Encryption.at != nil {
		parts = append(parts, "encrypted")
	}
	if t.TTL.given {
		parts = append(parts, "ttl "+t.TTL.show())
	}
	if t.Timeout.given {
		parts = append(parts, "timeout "+t.Timeout.show())
	}
	if len(parts) > 0 {
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	return s
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
