package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/terracecache/terrace/bench/internal/page"
)

// pageTable returns rows as a table of a page.
func pageTable[R any](title string, columns []columnOf[R], rows []R) page.Table {
	t := page.Table{Title: title}
	for _, c := range columns {
		t.Columns = append(t.Columns, page.Column{Name: c.name, Text: c.width < 0})
	}
	for i := range rows {
		var cells []string
		for _, c := range columns {
			cells = append(cells, strings.TrimSpace(c.cell(&rows[i])))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// machine is what a page says of where it was made.
func machine(goVersion, system string, cpus int, began string, seed uint64) []page.Fact {
	return []page.Fact{
		{Name: "Began", Value: began},
		{Name: "Machine", Value: fmt.Sprintf("%s, %s, %d CPUs", goVersion, system, cpus)},
		{Name: "Seed", Value: fmt.Sprint(seed)},
	}
}

// pageOf begins the page of a command of the lab.
func (e *labEnvironment) pageOf(ctx context.Context, title, lead string) *page.Report {
	r := &page.Report{
		Title: title, Lead: lead, Command: commandLine(ctx),
		Facts: machine(e.Go, e.System, e.CPUs, e.Began, e.Seed), Notes: e.Notes,
	}
	if !e.Complete {
		r.Notes = append([]string{incomplete}, r.Notes...)
	}
	return r
}

// incomplete is what a page says of a run that ended early.
const incomplete = "The run was interrupted or failed: this is what was done by then."

// latencyFigure shows the percentiles of several.
func latencyFigure(text string, categories []string, latencies []percentiles) page.Figure {
	f := page.Figure{
		Title: "Latency distribution", Text: text, Kind: page.Dots, Categories: categories,
		Y: page.Axis{Name: "latency of a read", Unit: page.Seconds, Log: true},
	}
	for _, q := range []struct {
		name string
		of   func(p percentiles) float64
	}{
		{"p50", func(p percentiles) float64 { return p.P50 }},
		{"p90", func(p percentiles) float64 { return p.P90 }},
		{"p99", func(p percentiles) float64 { return p.P99 }},
		{"p99.9", func(p percentiles) float64 { return p.P999 }},
		{"longest", func(p percentiles) float64 { return p.Max }},
	} {
		s := page.Series{Name: q.name, Tone: page.Rising}
		for _, l := range latencies {
			s.Values = append(s.Values, q.of(l))
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// valuesOf returns one figure of every row.
func valuesOf[R any](rows []R, of func(r *R) float64) []float64 {
	var values []float64
	for i := range rows {
		values = append(values, of(&rows[i]))
	}
	return values
}
