package coordinator

import (
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// Stats are a cache's counts since it was made. They are read one after another
// while the cache works, so those of one moment may be off by what was under way.
type Stats struct {
	// Name is the cache's name, Policy that of its refresh policy.
	Name, Policy string

	// Every Get, Lookup and GetOrLoad that has returned is counted once: under Hits
	// of one of the Tiers, or under one of these.
	Stale  uint64 // answered with a stale value
	Absent uint64 // answered from a tier with "there is none"
	Loads  uint64 // led a load and got its answer
	Joins  uint64 // waited for another request's look-up or load and got its answer
	Errors uint64 // answered with an error

	// Tiers are the tiers from the top down.
	Tiers []TierStats

	// LoaderCalls counts the calls of the loader, for requests and for refreshes;
	// those that failed are in LoaderFailures, of which LoaderPanics and LoaderTimeouts
	// are some.
	LoaderCalls, LoaderFailures, LoaderPanics, LoaderTimeouts uint64

	// Refreshes counts the refreshes begun in the background, RefreshesShed those not
	// begun because Limits.Background or Limits.Flights were reached.
	Refreshes, RefreshesShed uint64

	// Fenced counts the answers that were not stored because a write of the key
	// overlapped with their load or look-up, here or in another process.
	Fenced uint64

	// Saturated counts the requests that found Limits.Flights reached.
	Saturated uint64
	// LoadWaits counts the loads that found Limits.Loads reached.
	LoadWaits uint64

	// Leases counts the leases won; LeaseWaits the waits for what another process loads,
	// of which one load may take many.
	Leases, LeaseWaits uint64

	// Bus are the counts of the bus.
	Bus BusStats

	// Tracking are the counts of the tracking.
	Tracking TrackingStats

	// Flights is how many flights occupy a place now; Keys is how many keys have
	// something under way.
	Flights, Keys int
}

// TierStats are the counts of one tier.
type TierStats struct {
	// Name is the tier's name, Eviction that of how its store makes room, empty where it
	// tells none.
	Name, Eviction string
	// Hits counts the requests answered with a fresh value from this tier.
	Hits uint64
	// Errors counts the calls that failed, Unreadable the entries that could not be
	// read and counted as misses.
	Errors, Unreadable uint64
	// Failures counts those errors by their kind: see [tier.FailureKind].
	Failures map[string]uint64
	// Skipped counts the calls that were not made because the tier's breaker was open;
	// Breaker is its state: "closed" where calls go through, "open", "half-open", or ""
	// where there is none.
	Skipped uint64
	Breaker string
	// Fills counts the entries written here because a tier below had them.
	Fills uint64
	// Pending is how many writes wait to be tried again, Repeated how many were and
	// succeeded, Forgotten how many had to make room for others.
	Pending             int
	Repeated, Forgotten uint64
	// Usage is what the store tells of itself.
	Usage tier.Usage
}

// Requests returns the number of requests counted.
func (s Stats) Requests() uint64 {
	return s.Hits() + s.Stale + s.Absent + s.Loads + s.Joins + s.Errors
}

// Hits returns the fresh hits of all tiers.
func (s Stats) Hits() uint64 {
	var n uint64
	for _, t := range s.Tiers {
		n += t.Hits
	}
	return n
}

// Stats returns the counts. It is cheap enough to be called each second.
func (c *Cache[K, V]) Stats() Stats {
	n := c.counts
	s := Stats{
		Name:           c.name,
		Policy:         policy.NameOf(c.settings.Load().refresh),
		Stale:          n.sum(outcomeStale),
		Absent:         n.sum(outcomeAbsent),
		Loads:          n.sum(outcomeLoad),
		Joins:          n.sum(outcomeJoin),
		Errors:         n.sum(outcomeError),
		LoaderCalls:    n.loads.Load(),
		LoaderFailures: n.loadFailures.Load(),
		LoaderPanics:   n.loadPanics.Load(),
		LoaderTimeouts: n.loadTimeouts.Load(),
		Refreshes:      n.refreshes.Load(),
		RefreshesShed:  n.refreshesShed.Load(),
		Fenced:         n.fenced.Load(),
		Saturated:      n.saturated.Load(),
		LoadWaits:      n.loadWaits.Load(),
		Leases:         n.leases.Load(),
		LeaseWaits:     n.leaseWaits.Load(),
		Flights:        c.flights.inside(),
		Keys:           c.table.len(),
		Bus:            c.bus.stats(),
		Tracking:       c.tracking.stats(),
	}
	for i, l := range c.levels {
		t := TierStats{
			Name:       l.name,
			Eviction:   tier.EvictionOf(l.given),
			Hits:       n.sum(outcomeHit + outcome(i)),
			Errors:     l.counts.errors.Load(),
			Unreadable: l.counts.unreadable.Load(),
			Failures:   l.counts.kinds.all(),
			Skipped:    l.counts.skipped.Load(),
			Breaker:    l.breaker.state(),
			Fills:      l.counts.fills.Load(),
			Pending:    l.repeats.len(),
			Repeated:   l.counts.repeated.Load(),
			Forgotten:  l.counts.forgotten.Load(),
			Usage:      tier.Usage{Entries: -1, MaxEntries: -1, Cost: -1, MaxCost: -1, Evictions: -1, Rejections: -1},
		}
		if l.measure != nil {
			t.Usage = l.measure.Usage()
		}
		s.Tiers = append(s.Tiers, t)
	}
	return s
}
