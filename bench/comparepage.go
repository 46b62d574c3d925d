package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/terracecache/terrace/bench/internal/page"
)

// page returns the report as one.
func (r *report) page(ctx context.Context, s *settings) *page.Report {
	e := &r.Environment
	workload := fmt.Sprintf("%s, %d-byte values, %v reads/s for %vs after %vs of warm-up", s.workloadLabel(e.Workload.Keys),
		s.ValueSize, s.Rate, s.Seconds, s.WarmupSeconds)
	what := "Tiers and refresh policies compared"
	if r.ofDocuments() {
		what = "Caches of documents compared"
	}
	p := &page.Report{
		Title: what, Lead: fmt.Sprintf("Workload: %s. Origin: %s.", workload, e.Origin.Does), Command: commandLine(ctx),
		Facts: machine(e.Go, e.System, e.CPUs, e.Began, s.Seed),
		Notes: slices.Clone(e.Notes),
	}
	if !e.Complete {
		p.Notes = append([]string{incomplete}, p.Notes...)
	}
	p.Facts = append(p.Facts,
		page.Fact{Name: "Workload", Value: workload},
		page.Fact{Name: "Origin", Value: e.Origin.Does},
		page.Fact{Name: "Slow above", Value: s.Slow.String()},
		page.Fact{Name: "A read that does nothing", Value: fmt.Sprintf("p50 %s, p99 %s", short(e.Pace.P50), short(e.Pace.P99))},
		page.Fact{Name: "Closed loop", Value: fmt.Sprintf("%d workers for %vs", s.Concurrency, s.ClosedSeconds)},
	)
	for _, l3 := range e.L3 {
		p.Facts = append(p.Facts, page.Fact{Name: "l3", Value: l3})
	}
	// Without what charts and their tables show alone: paper has no room for it.
	p.Results = pageTable("Results", slices.Concat(r.leadingColumns(), r.heapColumns()), r.Rows)
	p.Sections = []page.Section{{Figures: r.figures(s)}}
	for _, d := range e.Config {
		p.Configs = append(p.Configs, page.Config{Name: d.File, Text: strings.Join(d.Caches, "\n")})
	}
	if !r.ofDocuments() {
		for _, row := range r.Rows {
			p.Configs = append(p.Configs, page.Config{Name: row.Combination + ", " + row.Policy, Text: s.config(row.Combination, row.Policy)})
		}
	}
	return p
}

// rowNames tell the rows apart on a page.
func (r *report) rowNames() []string {
	var names []string
	for i := range r.Rows {
		if row := &r.Rows[i]; r.ofDocuments() {
			names = append(names, row.cacheName(len(r.Environment.Config) > 1))
		} else {
			names = append(names, row.Combination+", "+row.Policy)
		}
	}
	return names
}

func (r *report) figures(s *settings) []page.Figure {
	names := r.rowNames()
	colors := names
	if !r.ofDocuments() {
		colors = nil
	}
	var latencies []percentiles
	for _, row := range r.Rows {
		latencies = append(latencies, row.Latency)
		if !r.ofDocuments() {
			colors = append(colors, row.Policy) // the same in all combinations
		}
	}
	var bars barsOfRows = func(title, text, axis string, unit page.Unit, of func(r *row) float64) page.Figure {
		return page.Figure{
			Title: title, Text: text, Kind: page.Bars, Categories: names, ColorsOf: colors,
			Y: page.Axis{Name: axis, Unit: unit}, Series: []page.Series{{Name: axis, Values: valuesOf(r.Rows, of)}},
		}
	}
	overview := latencyFigure(fmt.Sprintf("From when a read was meant to start, in the open loop at %v reads/s. The nearer to the left the better.", s.Rate), names, latencies)
	overview.Title = "Latency, some percentiles"
	oldest := bars("Staleness: age of the oldest value served", "Counted from when its load began.", "age", page.Seconds,
		func(r *row) float64 { return r.Oldest })
	if !r.ofDocuments() {
		oldest.Marks = []page.Mark{{Name: "TTL", At: s.TTL.Seconds()}}
	}
	figures := []page.Figure{
		r.tierFigure(names),
		overview,
	}
	figures = append(figures, r.distributionFigures("Latency distribution", "reads", func(r *row) []percentile { return r.LatencyOver })...)
	figures = append(figures, r.changeFigures(names)...)
	figures = append(figures,
		bars("Origin calls", "Loads in the open loop, refreshes included.", "origin calls", page.Count, func(r *row) float64 { return float64(r.OriginCalls) }))
	figures = append(figures, r.originFigures(s)...)
	figures = append(figures, r.stalenessFigures(bars)...)
	figures = append(figures, oldest,
		bars("Slow reads", fmt.Sprintf("Reads that took longer than %v.", s.Slow), "slow reads", page.Count, func(r *row) float64 { return float64(r.Slow) }),
		bars("Throughput", fmt.Sprintf("Closed loop of %d workers, each beginning its next read when it has its last.", s.Concurrency), "reads per second", page.Count,
			func(r *row) float64 { return r.Throughput }))
	if len(r.Rows) > 0 && len(r.Rows[0].Goroutines) > 1 {
		figures = append(figures, r.goroutinesFigure(names))
	}
	if slices.ContainsFunc(r.Rows, func(r row) bool { return r.HeapPerEntry > 0 }) {
		figures = append(figures, bars("Heap per entry", "Of this process, for an entry that each in-memory tier holds, key and value included.", "heap per entry", page.Bytes,
			func(r *row) float64 {
				if r.HeapPerEntry > 0 {
					return r.HeapPerEntry
				}
				return math.NaN()
			}))
	}
	return figures
}

// tierFigure shows what each tier answered.
func (r *report) tierFigure(names []string) page.Figure {
	f := page.Figure{
		Title: "Hit ratio by tier",
		Text:  "Share of the reads that each tier answered, fresh or stale; the rest waited for the origin.",
		Kind:  page.Stack, Categories: names,
		Y: page.Axis{Name: "share of reads", Unit: page.Share, Most: 1},
	}
	var tiers []string
	for i := range r.Rows {
		for _, t := range r.Rows[i].tiersInOrder() {
			if !slices.Contains(tiers, t) {
				tiers = append(tiers, t)
			}
		}
	}
	if !r.ofDocuments() {
		slices.Sort(tiers)
	}
	for _, t := range tiers {
		f.Series = append(f.Series, page.Series{Name: t, Values: valuesOf(r.Rows, func(r *row) float64 {
			if n, there := r.Hits[t]; there {
				return ratio(n, r.Requests)
			}
			return math.NaN()
		})})
	}
	f.Series = append(f.Series, page.Series{Name: "origin", Tone: page.Miss, Values: valuesOf(r.Rows, func(r *row) float64 { return ratio(r.Misses, r.Requests) })})
	return f
}

// tiersInOrder returns the names of the tiers from the top.
func (r *row) tiersInOrder() []string {
	var names []string
	for _, t := range r.Tiers {
		names = append(names, t.Name)
	}
	for name := range r.Hits {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(r.Tiers) == 0 {
		slices.Sort(names)
	}
	return names
}

// originFigures show when the origin was called.
func (r *report) originFigures(s *settings) []page.Figure {
	each := s.Seconds / intervals
	return r.linesByCombination(page.Figure{
		Title: "Origin calls over time",
		X:     page.Axis{Name: "time since the warm-up", Unit: page.Seconds},
		Y:     page.Axis{Name: "origin calls per second", Unit: page.Count},
	}, func(r *row) (points []page.Point) {
		for n, calls := range r.OriginOver {
			points = append(points, page.Point{X: float64(n) * each, Y: float64(calls) / each})
		}
		return points
	})
}

// linesByCombination returns a figure like the given one for each combination, with its
// policies, or one for all documents. Rows without points are left out.
func (r *report) linesByCombination(like page.Figure, points func(r *row) []page.Point) []page.Figure {
	var figures []page.Figure
	last := ""
	for i := range r.Rows {
		row := &r.Rows[i]
		series := page.Series{Name: row.Policy, Points: points(row)}
		of := row.Combination
		if r.ofDocuments() {
			of, series.Name = "", row.cacheName(len(r.Environment.Config) > 1)
		}
		if len(series.Points) == 0 {
			continue
		}
		if len(figures) == 0 || of != last {
			f := like
			f.Kind = page.Lines
			if of != "" {
				f.Title += ": " + of
			}
			if len(figures) > 0 {
				f.Text = "" // it stands above
			}
			figures = append(figures, f)
			last = of
		}
		f := &figures[len(figures)-1]
		f.Series = append(f.Series, series)
	}
	return figures
}

// goroutinesFigure shows throughput by how many goroutines read.
func (r *report) goroutinesFigure(names []string) page.Figure {
	f := page.Figure{
		Title: "Throughput by goroutines", Text: "Closed loops of so many goroutines.", Kind: page.Lines,
		X: page.Axis{Name: "goroutines", Unit: page.Count, Log: true},
		Y: page.Axis{Name: "reads per second", Unit: page.Count, Log: true},
	}
	for i, row := range r.Rows {
		s := page.Series{Name: names[i]}
		for _, g := range row.Goroutines {
			s.Points = append(s.Points, page.Point{X: float64(g.Goroutines), Y: g.PerSecond})
		}
		slices.SortFunc(s.Points, func(a, b page.Point) int { return int(a.X - b.X) })
		f.Series = append(f.Series, s)
	}
	return f
}
