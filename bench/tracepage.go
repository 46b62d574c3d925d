package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terracecache/terrace/bench/internal/page"
)

// page returns the report as one.
func (r *traceReport) page(ctx context.Context, s *traceSettings) *page.Report {
	e := &r.Environment
	var names []string
	for _, t := range e.Traces {
		names = append(names, filepath.Base(t.Trace))
	}
	p := &page.Report{
		Title:   "Recorded requests: which eviction, at which size",
		Lead:    fmt.Sprintf("Traces replayed through evictions and tiers, beside opt, the most hits that there can be: %s.", strings.Join(names, ", ")),
		Command: commandLine(ctx),
		Facts:   machine(e.Go, e.System, e.CPUs, e.Began, e.Seed),
		Notes:   slices.Clone(e.Violations),
	}
	if !e.Complete {
		p.Notes = append(p.Notes, incomplete)
	}
	for i := range e.Traces {
		p.Sections = append(p.Sections, r.traceSection(&e.Traces[i]))
		p.Facts = append(p.Facts, page.Fact{Name: filepath.Base(e.Traces[i].Trace), Value: e.Traces[i].brief()})
	}
	for i := range s.combinations {
		p.Configs = append(p.Configs, page.Config{Name: s.Tiers[i], Text: s.combinations[i].config()})
	}
	for _, name := range s.policies() {
		if len(s.sizes) > 0 && !strings.HasSuffix(name, "-sharded") {
			p.Configs = append(p.Configs, page.Config{Name: name, Text: fmt.Sprintf(
				"tiers: [{name: l1, backend: memory, eviction: %s, capacity: SIZE}]", name)})
		}
	}
	return p
}

// brief says what the trace is.
func (t *traceOfRows) brief() string {
	text := t.Format
	if t.Compression != "" {
		text += ", " + t.Compression
	}
	text += fmt.Sprintf(": %d requests of %d keys", t.Requests, t.Keys)
	if t.Writes+t.Deletes > 0 {
		text += fmt.Sprintf(", %d of them writes, %d deletions", t.Writes, t.Deletes)
	}
	if t.Malformed > 0 {
		text += fmt.Sprintf("; %d malformed lines left out, the first: %s", t.Malformed, oneLine(t.FirstMalformed[0]))
	}
	for _, note := range t.Notes {
		text += "; " + note
	}
	if t.Error != "" {
		text += "; " + t.Error
	}
	return text
}

// What opt is beside a curve: it is a bound of hits, and of nothing else.
const (
	optBoundText = "opt knows what comes: no cache of its size can be below it."
	optOtherText = "opt has the most hits of all requests that a cache of its size can have; others may be below it here."
)

// traceMeasures are the ratios of which a row may have curves.
var traceMeasures = []struct {
	title, axis, opt string
	of               func(r *traceRow) *float64
}{
	{"Miss ratio by size", "misses of all requests", optBoundText, func(r *traceRow) *float64 { return &r.HitRatio }},
	{"Miss ratio of reads by size", "misses of reads", optOtherText, func(r *traceRow) *float64 { return r.ReadHitRatio }},
	{"Byte miss ratio by size", "missed bytes", optOtherText, func(r *traceRow) *float64 { return r.ByteHitRatio }},
	{"Cost-weighted miss ratio by size", "cost of misses", optOtherText, func(r *traceRow) *float64 { return r.CostHitRatio }},
}

// traceSection returns what the page shows of one trace.
func (r *traceReport) traceSection(t *traceOfRows) page.Section {
	s := page.Section{Heading: filepath.Base(t.Trace), Text: t.brief() + "."}
	var rows []*traceRow
	for i := range r.Rows {
		if r.Rows[i].Trace == t.Trace {
			rows = append(rows, &r.Rows[i])
		}
	}
	if len(rows) == 0 {
		return s
	}
	for _, unit := range []string{"entries", "bytes"} {
		of := slices.DeleteFunc(slices.Clone(rows), func(r *traceRow) bool { return r.Unit != unit })
		for _, m := range traceMeasures {
			if f := missCurves(of, unit, m.opt, m.of); f != nil {
				f.Title, f.Y.Name = m.title, m.axis
				s.Figures = append(s.Figures, *f)
			}
		}
	}
	if f := tierFigure(rows); f != nil {
		s.Figures = append(s.Figures, *f)
	}
	s.Tables = []page.Table{traceTable(rows)}
	return s
}

// missCurves returns the miss ratio of each policy over the sizes, or nil where there is
// none. opt is said of the bound where that is among them.
func missCurves(rows []*traceRow, unit, opt string, of func(r *traceRow) *float64) *page.Figure {
	points := make(map[string][]page.Point)
	var names []string
	for _, r := range rows {
		hit := of(r)
		if hit == nil {
			continue
		}
		if _, known := points[r.Policy]; !known {
			names = append(names, r.Policy)
		}
		points[r.Policy] = append(points[r.Policy], page.Point{X: float64(r.Size), Y: 1 - *hit})
	}
	if len(names) == 0 {
		return nil
	}
	f := &page.Figure{
		Text: "The lower the better.",
		Kind: page.Lines,
		X:    page.Axis{Name: "size in " + unit + "", Unit: page.Count, Log: true},
		Y:    page.Axis{Unit: page.Share},
	}
	if unit == "bytes" {
		f.X.Name, f.X.Unit = "size", page.Bytes
	}
	for _, name := range names {
		s := page.Series{Name: name, Points: points[name]}
		slices.SortFunc(s.Points, func(a, b page.Point) int { return cmp.Compare(a.X, b.X) })
		if name == optimum {
			s.Tone = page.Bound
			f.Text += " " + opt
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// tierFigure returns what each tier answered, of combinations of several tiers beside the
// bound of their size; nil where there are none.
func tierFigure(rows []*traceRow) *page.Figure {
	var several []*traceRow
	var names []string
	for _, r := range rows {
		if len(r.Tiers) < 2 {
			continue
		}
		several = append(several, r)
		for _, t := range r.Tiers {
			if !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	if len(several) == 0 {
		return nil
	}
	f := &page.Figure{
		Title: "Hit ratio by tier",
		Text:  "Share of all requests that each tier answered; the rest are misses.",
		Kind:  page.Stack,
		Y:     page.Axis{Name: "share of requests", Unit: page.Share, Most: 1},
	}
	miss := page.Series{Name: "miss", Tone: page.Miss}
	for _, r := range several {
		var sizes []string
		for _, t := range r.Tiers {
			sizes = append(sizes, fmt.Sprintf("%s %s %s", t.Name, t.Policy, (&traceRow{Size: t.Size, Unit: r.Unit}).size()))
		}
		f.Categories = append(f.Categories, strings.Join(sizes, " + "))
		miss.Values = append(miss.Values, 1-r.HitRatio)
	}
	for _, name := range names {
		s := page.Series{Name: name}
		for _, r := range several {
			value := 0.0
			for _, t := range r.Tiers {
				if t.Name == name {
					value = t.HitRatio
				}
			}
			s.Values = append(s.Values, value)
		}
		f.Series = append(f.Series, s)
	}
	f.Series = append(f.Series, miss)
	return f
}

func traceTable(rows []*traceRow) page.Table {
	t := page.Table{Title: "All rows"}
	columns := usedTraceColumns(rows)
	for _, c := range columns {
		t.Columns = append(t.Columns, page.Column{Name: c.name, Text: c.left})
	}
	for _, r := range rows {
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.cell(r))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}
