package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terracecache/terrace/bench/internal/page"
)

// page returns the advice as one.
func (a *advice) page(ctx context.Context, s *adviseSettings) *page.Report {
	e := &a.Environment
	p := &page.Report{
		Title: "Advice: which tiers, which eviction, at which size",
		Lead: fmt.Sprintf("For %s: %s. Goal: %s, within %s in this process, which are %d entries of %d bytes.",
			filepath.Base(s.label()), a.Trace.brief(), goalTexts[e.Goal], s.Memory, e.Budget, e.EntryBytes),
		Command: commandLine(ctx),
		Facts:   machine(e.Go, e.System, e.CPUs, e.Began, e.Seed),
	}
	if !e.Complete {
		p.Notes = append(p.Notes, incomplete)
	}
	if a.Advice == nil {
		p.Notes = append(p.Notes, "Not all of it was done: there is no advice.")
	} else {
		p.Results = a.Advice.tiersTable(e)
		p.Sections = append(p.Sections, a.Advice.section(s))
	}
	if len(a.Rows) > 0 {
		p.Sections = append(p.Sections, a.curveSection())
	}
	if len(a.Alternatives) > 0 {
		p.Sections = append(p.Sections, a.alternativesSection(s))
	}
	p.Facts = append(p.Facts,
		page.Fact{Name: "Goal", Value: goalTexts[e.Goal]},
		page.Fact{Name: "Memory", Value: fmt.Sprintf("%s: %d entries of %d bytes", s.Memory, e.Budget, e.EntryBytes)},
		page.Fact{Name: "Origin", Value: fmt.Sprintf("a load takes %v", s.OriginLatency)},
		page.Fact{Name: "Requests", Value: fmt.Sprintf("%v a second", s.Rate)},
		page.Fact{Name: "Lives", Value: fmt.Sprintf("fresh for %v, and then stale for up to %v", s.TTL, s.MaxStale)},
	)
	if a.Remote != nil {
		p.Facts = append(p.Facts, page.Fact{Name: "Remote tier", Value: a.remoteText()})
	}
	if s.priced() {
		p.Facts = append(p.Facts, page.Fact{Name: "Prices", Value: fmt.Sprintf("%v of a million loads, %v of the remote tier for an hour, %v of a GiB for an hour",
			s.OriginPrice, s.RemotePrice, s.MemoryPrice)})
	}
	return p
}

// goalTexts say what the goals are.
var goalTexts = map[string]string{
	goalP99:    "the least 99th percentile of reads",
	goalOrigin: "the fewest loads at the origin",
	goalCost:   "the least money an hour",
}

// tiersTable is what is advised, and what each tier is expected to answer.
func (r *recommendation) tiersTable(e *adviceEnvironment) page.Table {
	t := page.Table{Title: "Advised", Columns: []page.Column{
		{Name: "tier", Text: true}, {Name: "backend", Text: true}, {Name: "eviction", Text: true}, {Name: "entries"}, {Name: "memory"}, {Name: "hits, of all requests"},
	}}
	line := func(name, backend, eviction string, entries float64, hits float64) {
		t.Rows = append(t.Rows, []string{name, backend, eviction, page.Count.Text(entries), page.Bytes.Text(entries * float64(e.EntryBytes)), page.Share.Text(hits)})
	}
	for _, tier := range r.Tiers {
		backend, eviction := backends[tier.Policy], tier.Policy
		if tier.remote {
			backend, eviction = "redis", "allkeys-lru"
		}
		line(tier.Name, backend, eviction, float64(tier.Size), tier.HitRatio)
	}
	if len(r.Tiers) > 1 {
		total := 0.0
		for _, tier := range r.Tiers {
			total += float64(tier.Size)
		}
		line("all", "", "", total, r.HitRatio)
	}
	return t
}

// section is what is expected of what is advised, why it is, and its document.
func (r *recommendation) section(s *adviseSettings) page.Section {
	t := page.Table{Title: "What is expected", Columns: []page.Column{{Text: true}, {Name: "expected"}}}
	line := func(what, value string) { t.Rows = append(t.Rows, []string{what, value}) }
	line("Hit ratio", page.Share.Text(r.HitRatio))
	if r.FullHitRatio != nil {
		line("Hit ratio of a full replay", page.Share.Text(*r.FullHitRatio))
	}
	line("p99 of a read", short(r.P99))
	line("Mean of a read", short(r.Mean))
	line(fmt.Sprintf("Loads a second, at %v requests", s.Rate), fmt.Sprintf("%.1f", r.OriginLoads))
	line("Memory in this process", page.Bytes.Text(float64(r.Memory)))
	if s.priced() {
		line("Cost of an hour", fmt.Sprintf("%.4g", r.Cost))
	}
	p := page.Section{
		Text: fmt.Sprintf("Because %s. Refresh: %s, as %s. Lives are left out: a hit ratio is that of entries which do not end.",
			r.Why, r.Refresh.Policy, r.Refresh.Reason),
		Tables:  []page.Table{t},
		Configs: []page.Config{{Name: "The document, which validate accepts", Text: r.Config}},
	}
	if r.Replay != "" {
		p.Configs = append(p.Configs, page.Config{Name: "To see it in a full replay", Text: r.Replay})
	}
	return p
}

// curveSection shows what led to the advice.
func (a *advice) curveSection() page.Section {
	var rows []*traceRow
	for _, r := range a.Rows {
		rows = append(rows, &traceRow{Policy: r.Policy, Size: r.Size, HitRatio: r.HitRatio})
	}
	f := missCurves(rows, "entries", optBoundText, func(r *traceRow) *float64 { return &r.HitRatio })
	f.Title, f.Y.Name = "Miss ratio by size", "misses of all requests"
	if a.Advice != nil {
		if at, local := a.Advice.point(); local {
			f.Series = append(f.Series, page.Series{Name: "advised", Tone: page.Chosen, Loose: true, Points: []page.Point{at}})
			f.Text += fmt.Sprintf(" The ring is what is advised, %s.", a.Advice.argument())
			if a.Advice.isRemote() {
				f.Text += " It is where its tiers in this process are; the remote one answers most of what they miss."
			}
		} else {
			f.Text += " What is advised has no tier in this process."
		}
	}
	var how strings.Builder
	a.Sample.write(&how)
	section := page.Section{Heading: "The curve that led there", Text: sentences(how.String()), Figures: []page.Figure{*f}}
	if a.Sample.MeanError != nil {
		section.Tables = []page.Table{a.errorTable()}
	}
	return section
}

// sentences returns lines that begin with a word for people as running text.
func sentences(lines string) string {
	var parts []string
	for line := range strings.Lines(lines) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			parts = append(parts, strings.ToUpper(line[:1])+line[1:]+".")
		}
	}
	return strings.Join(parts, " ")
}

// point returns where the tiers in this process are on the curve, and false where there
// are none.
func (r *recommendation) point() (page.Point, bool) {
	var entries int64
	hits := 0.0
	for _, t := range r.Tiers {
		if !t.remote {
			entries, hits = entries+t.Size, hits+t.HitRatio
		}
	}
	return page.Point{X: float64(entries), Y: 1 - hits}, entries > 0
}

// errorTable compares the curve with full replays.
func (a *advice) errorTable() page.Table {
	t := page.Table{Title: "The curve and full replays", Columns: []page.Column{
		{Name: "eviction", Text: true}, {Name: "size"}, {Name: "hits, estimated"}, {Name: "of a full replay"}, {Name: "points off"},
	}}
	for _, r := range a.Rows {
		if r.FullHitRatio != nil {
			t.Rows = append(t.Rows, []string{r.Policy, page.Count.Text(float64(r.Size)), page.Share.Text(r.HitRatio), page.Share.Text(*r.FullHitRatio),
				fmt.Sprintf("%+.2f", 100*(*r.FullHitRatio-r.HitRatio))})
		}
	}
	return t
}

// alternativesSection shows the best of each combination of evictions, what is advised
// first, and has all that was compared in a table.
func (a *advice) alternativesSection(s *adviseSettings) page.Section {
	ranked := a.ranked()
	best := bestOfEach(ranked)
	if a.Advice != nil {
		best = slices.DeleteFunc(best, func(c *alternative) bool { return c.argument() == a.Advice.argument() })
		best = slices.Insert(best, 0, &a.Advice.alternative)
	}
	var names []string
	for _, c := range best {
		names = append(names, a.label(c))
	}
	values := func(of func(c *alternative) float64) []float64 {
		var values []float64
		for _, c := range best {
			values = append(values, of(c))
		}
		return values
	}
	bars := func(title, text, axis string, unit page.Unit, of func(c *alternative) float64) page.Figure {
		return page.Figure{
			Title: title, Text: text, Kind: page.Bars, Categories: names,
			Y: page.Axis{Name: axis, Unit: unit}, Series: []page.Series{{Name: axis, Values: values(of)}},
		}
	}
	figures := []page.Figure{
		tiersOf(best, names),
		{
			Title: "Latency of a read", Text: "Expected, with lives left out. The nearer to the left the better.",
			Kind: page.Dots, Categories: names, Y: page.Axis{Name: "latency of a read", Unit: page.Seconds, Log: true},
			Series: []page.Series{
				{Name: "mean", Values: values(func(c *alternative) float64 { return c.Mean })},
				{Name: "p99", Values: values(func(c *alternative) float64 { return c.P99 })},
			},
		},
		bars("Origin load", fmt.Sprintf("Expected loads at %v requests a second.", s.Rate), "loads a second", page.Count, func(c *alternative) float64 { return c.OriginLoads }),
		bars("Memory in this process", "By the bytes that an entry is counted as.", "memory", page.Bytes, func(c *alternative) float64 { return float64(c.Memory) }),
	}
	if s.priced() {
		figures = append(figures, bars("Cost of an hour", "Of loads, of the remote tier, and of memory in this process, by the prices given.", "cost of an hour", page.Number,
			func(c *alternative) float64 { return c.Cost }))
	}
	return page.Section{
		Heading: "The alternatives",
		Text:    "Of each combination of evictions the size that is best under the goal. All that was compared is in the last table, the best under the goal first.",
		Figures: figures,
		Tables:  []page.Table{a.alternativesTable(ranked, s.priced())},
	}
}

// label names an alternative on a page.
func (a *advice) label(c *alternative) string {
	var parts []string
	for _, t := range c.Tiers {
		policy := t.Policy
		if t.remote {
			policy = "remote"
		}
		parts = append(parts, fmt.Sprintf("%s %s %s", t.Name, policy, page.Count.Text(float64(t.Size))))
	}
	label := strings.Join(parts, " + ")
	if a.Advice != nil && c.argument() == a.Advice.argument() {
		label += " (advised)"
	}
	return label
}

// tiersOf shows what each tier is expected to answer.
func tiersOf(all []*alternative, names []string) page.Figure {
	f := page.Figure{
		Title: "Hit ratio by tier", Text: "Expected share of all requests that each tier answers; the rest are loads.",
		Kind: page.Stack, Categories: names, Y: page.Axis{Name: "share of requests", Unit: page.Share, Most: 1},
	}
	var tiers []string
	for _, c := range all {
		for _, t := range c.Tiers {
			if !slices.Contains(tiers, t.Name) {
				tiers = append(tiers, t.Name)
			}
		}
	}
	slices.Sort(tiers)
	for _, name := range tiers {
		series := page.Series{Name: name}
		for _, c := range all {
			value := math.NaN()
			for _, t := range c.Tiers {
				if t.Name == name {
					value = t.HitRatio
				}
			}
			series.Values = append(series.Values, value)
		}
		f.Series = append(f.Series, series)
	}
	miss := page.Series{Name: "origin", Tone: page.Miss}
	for _, c := range all {
		miss.Values = append(miss.Values, 1-c.HitRatio)
	}
	f.Series = append(f.Series, miss)
	return f
}

func (a *advice) alternativesTable(ranked []*alternative, priced bool) page.Table {
	t := page.Table{Title: "All that was compared", Columns: []page.Column{
		{Name: "alternative", Text: true}, {Name: "hits"}, {Name: "p99"}, {Name: "mean"}, {Name: "loads/s"}, {Name: "memory"},
	}}
	if priced {
		t.Columns = append(t.Columns, page.Column{Name: "cost/h"})
	}
	for _, c := range ranked {
		row := []string{a.label(c), page.Share.Text(c.HitRatio), short(c.P99), short(c.Mean), fmt.Sprintf("%.1f", c.OriginLoads), page.Bytes.Text(float64(c.Memory))}
		if priced {
			row = append(row, fmt.Sprintf("%.4g", c.Cost))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
