package config

import (
	"fmt"
	"time"

	"github.com/terracecache/terrace/policy"
)

// warnings returns what is legal in the document and unwise.
func warnings(doc *Document) Faults {
	w := &decoder{registry: doc.registry}
	for _, name := range doc.Names() {
		c := doc.spec.Caches[name]
		path := joinPath("caches", name)
		w.warnLifetime(c, path)
		w.warnTiers(c, path)
		w.warnRefresh(c, path)
	}
	return w.faults
}

func (d *decoder) warnLifetime(c *cacheSpec, path string) {
	l := &c.Lifetime
	if !(l.Jitter.f > 0) && l.TTL.Duration != policy.Forever && c.mostEntries() > manyEntries {
		d.broken(l.at, "jitter", path+".lifetime", "none, with many entries: those that were stored together end together, and are loaded together; 10% spreads them")
	}
	// What a loader may take is all that a document says of its origin.
	if patience := c.Limits.loadTimeout(); l.StaleIfError.Duration == 0 && l.StaleWhileRevalidate.Duration == 0 && patience > slowLoad {
		d.broken(l.at, "stale_if_error", path+".lifetime", fmt.Sprintf("no stale window, with loads that may take %s: while the origin is slow or down readers wait for it, or get its errors", showDuration(patience)))
	}
}

func (l *limitsSpec) loadTimeout() time.Duration {
	if l.LoadTimeout.given {
		return l.LoadTimeout.Duration
	}
	return 10 * time.Second
}

// mostEntries returns how many entries the cache can hold; many, where that is not
// known.
func (c *cacheSpec) mostEntries() int64 {
	most := int64(0)
	for _, t := range c.Tiers {
		if t.Capacity.entries == 0 {
			return 1 << 40
		}
		most = max(most, t.Capacity.entries)
	}
	return most
}

func (d *decoder) warnTiers(c *cacheSpec, path string) {
	if window := max(c.Lifetime.StaleWhileRevalidate.Duration, c.Lifetime.StaleIfError.Duration); window > 0 {
		keeps := false
		for i := range c.Tiers {
			keeps = keeps || !c.Tiers[i].TTL.given || c.Tiers[i].TTL.Duration > c.Lifetime.TTL.Duration
		}
		if !keeps {
			d.broken(c.at, "tiers", path, "each has a ttl that ends before entries turn stale: none is left to be served in the lifetime's stale windows")
		}
	}
	for i := range c.Tiers {
		t := &c.Tiers[i]
		at := t.path(path, i)
		if d.registry.kindOf(string(t.Backend)) != "memory" {
			if t.MinSize.given && (t.Compression.Algorithm == "" || t.Compression.Algorithm == "none") {
				d.broken(t.at, "min_size", at, "does nothing without a compression")
			}
			if t.Backend == "redis" && t.Prefix == "" {
				d.broken(t.at, "prefix", at, "none: the tier cannot be cleared, and nothing tells its keys from those of others")
			}
			continue
		}
		for j := i + 1; j < len(c.Tiers); j++ {
			below := &c.Tiers[j]
			switch kind := d.registry.kindOf(string(below.Backend)); {
			case kind == "bytes" && !t.TTL.given:
				d.broken(t.at, "ttl", at, fmt.Sprintf("no bound above %s, which other processes write too: what they change stays as it was here for a whole life", below.Name))
			case kind == "memory" && j == i+1 && smaller(&below.Capacity, &t.Capacity):
				d.broken(below.at, "capacity", below.path(path, j), fmt.Sprintf("no more than that of %s above it, %s: this tier will hold little that is not there", t.Name, t.Capacity.show()))
			}
		}
	}
}

// smaller reports whether a capacity is at most another in the same unit.
func smaller(a, b *capacity) bool {
	return a.entries > 0 && b.entries > 0 && a.entries <= b.entries || a.bytes > 0 && b.bytes > 0 && a.bytes <= b.bytes
}

func (d *decoder) warnRefresh(c *cacheSpec, path string) {
	if c.Refresh.Beta.given && c.Refresh.Policy != "xfetch" {
		d.broken(c.Refresh.at, "beta", path+".refresh", fmt.Sprintf("is xfetch's, and does nothing under %s", c.Refresh.Policy))
	}
	if (c.Refresh.Policy == "" || c.Refresh.Policy == "fixed") && c.Lifetime.StaleWhileRevalidate.Duration > 0 {
		d.broken(c.Lifetime.at, "stale_while_revalidate", path+".lifetime", "does nothing under the policy fixed: want refresh: {policy: swr} or xfetch")
	}
}
