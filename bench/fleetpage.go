package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/terracecache/terrace/bench/internal/page"
)

// page returns the report as one.
func (r *fleetReport) page(ctx context.Context, s *fleetSettings) *page.Report {
	e := &r.Environment
	what := fmt.Sprintf("%d processes of %d callers, %d keys; the origin takes %v", s.Processes, s.Callers, s.Keys, s.OriginLatency)
	p := &page.Report{
		Title: "Several processes on one server", Lead: what + ".", Command: commandLine(ctx),
		Facts:   machine(e.Go, e.System, e.CPUs, e.Began, e.Seed),
		Notes:   slices.Clone(e.Notes),
		Results: pageTable("Results", fleetColumns, r.Rows),
	}
	if !e.Complete {
		p.Notes = append([]string{incomplete}, p.Notes...)
	}
	p.Facts = append(p.Facts,
		page.Fact{Name: "Fleet", Value: what},
		page.Fact{Name: "Server", Value: e.Server},
		page.Fact{Name: "l1 keeps a value for", Value: s.L1TTL.String()},
		page.Fact{Name: "A lease lives for", Value: s.LeaseLife.String()},
	)
	p.Sections = []page.Section{{Figures: []page.Figure{
		r.figure("Origin calls", "Loads that the fleet began.", "origin calls", page.Count, func(r *fleetRow) float64 { return float64(r.OriginCalls) }),
		r.figure("Longest wait", "Of any read.", "wait", page.Seconds, func(r *fleetRow) float64 { return r.LongestWait }),
	}}}
	if slices.ContainsFunc(r.Rows, func(r fleetRow) bool { return r.writes() }) {
		written := func(of func(r *fleetRow) float64) func(r *fleetRow) float64 {
			return func(r *fleetRow) float64 {
				if r.writes() {
					return of(r)
				}
				return math.NaN()
			}
		}
		p.Sections[0].Figures = append(p.Sections[0].Figures,
			r.figure("Stale reads", "Reads that began after a write had returned in any process, and got what was before it.", "reads", page.Count,
				written(func(r *fleetRow) float64 { return float64(r.StaleReads) })),
			r.figure("Staleness: when the last stale read began", "After its write's return, or in cut after the connection was restored.", "time", page.Seconds,
				written(func(r *fleetRow) float64 { return r.Converge })))
	}
	seen := make(map[string]bool)
	for _, row := range r.Rows {
		if name := row.variant(); !seen[name] {
			seen[name] = true
			p.Configs = append(p.Configs, page.Config{Name: name, Text: row.config(s)})
		}
	}
	return p
}

// variant is what a row was run with.
func (r *fleetRow) variant() string {
	return fmt.Sprintf("lease %s, bus %s", onOff(r.Lease), onOff(r.Bus))
}

// figure shows all scenarios, with a bar for each variant.
func (r *fleetReport) figure(title, text, axis string, unit page.Unit, of func(r *fleetRow) float64) page.Figure {
	f := page.Figure{Title: title, Text: text, Kind: page.Bars, Y: page.Axis{Name: axis, Unit: unit}}
	for _, row := range r.Rows {
		if !slices.Contains(f.Categories, row.Scenario) {
			f.Categories = append(f.Categories, row.Scenario)
		}
		if name := row.variant(); !slices.ContainsFunc(f.Series, func(s page.Series) bool { return s.Name == name }) {
			f.Series = append(f.Series, page.Series{Name: name})
		}
	}
	for i := range f.Series {
		s := &f.Series[i]
		for _, scenario := range f.Categories {
			value := math.NaN()
			for n := range r.Rows {
				if row := &r.Rows[n]; row.Scenario == scenario && row.variant() == s.Name {
					value = of(row)
				}
			}
			s.Values = append(s.Values, value)
		}
	}
	return f
}

// config returns what each process of the row ran, as a document; the times by which histories
// notice faults sooner are not in it.
func (r *fleetRow) config(s *fleetSettings) string {
	c := cacheConfig{name: "fleet", lifetime: "ttl: " + fleetTTL.String()}
	c.tiers = append(c.tiers, fmt.Sprintf("{name: l1, backend: memory, eviction: lru, capacity: %d, ttl: %v}", 2*r.Keys, s.L1TTL))
	if r.Backend == "memcached" {
		c.tiers = append(c.tiers, `{name: l2, backend: memcached, servers: ["${MEMCACHED}"]}`)
	} else {
		c.tiers = append(c.tiers, `{name: l2, backend: redis, url: "${REDIS_URL}"}`)
	}
	text := c.String()
	if r.Lease {
		text += fmt.Sprintf("    lease: %v\n", s.LeaseLife)
	}
	if r.Bus {
		text += "    bus: pubsub\n"
	}
	return text + fmt.Sprintf("    limits: {load_timeout: %v}\n", loadTimeout)
}
