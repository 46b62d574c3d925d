package main

import (
	"fmt"
	"math"

	"github.com/terracecache/terrace/bench/internal/page"
)

// distributionFigures show a latency's percentiles as far as there are enough of what is
// counted.
func (r *report) distributionFigures(title, counted string, of func(r *row) []percentile) []page.Figure {
	return r.linesByCombination(page.Figure{
		Title: title,
		Text: fmt.Sprintf("The share of the %s, along the bottom, that took no longer than so long. The tail is stretched: p99.9 is as far from p99 as that is from p90. "+
			"A line goes as far as there are at least %d beyond it.", counted, beyondPercentile),
		X: page.Axis{Name: "percentile of " + counted, Unit: page.Percentile, Log: true},
		Y: page.Axis{Name: "latency", Unit: page.Seconds, Log: true},
	}, func(r *row) (points []page.Point) {
		for _, p := range of(r) {
			points = append(points, page.Point{X: 100 / (100 - p.Percentile), Y: p.Seconds})
		}
		return points
	})
}

// changesOf is one kind of what is done beside reads.
type changesOf struct {
	name, short  string
	latency      func(r *row) *percentiles // nil: there were none
	distribution func(r *row) []percentile
}

// changes returns those that there were.
func (r *report) changes() []changesOf {
	var there []changesOf
	for _, c := range []changesOf{
		{"writes", "set", func(r *row) *percentiles { return r.WriteLatency }, func(r *row) []percentile { return r.WriteOver }},
		{"deletes", "del", func(r *row) *percentiles { return r.DeleteLatency }, func(r *row) []percentile { return r.DeleteOver }},
	} {
		for i := range r.Rows {
			if c.latency(&r.Rows[i]) != nil {
				there = append(there, c)
				break
			}
		}
	}
	return there
}

// changeFigures show how long writes and deletes took.
func (r *report) changeFigures(names []string) []page.Figure {
	var figures []page.Figure
	for _, c := range r.changes() {
		var latencies []percentiles
		for i := range r.Rows {
			latencies = append(latencies, supported(c.latency(&r.Rows[i]), c.distribution(&r.Rows[i])))
		}
		overview := latencyFigure(fmt.Sprintf("From when one was meant to start, until all tiers have been told; as far as at least %d lie beyond a percentile.", beyondPercentile), names, latencies)
		overview.Title, overview.Y.Name = "Latency of "+c.name+", some percentiles", "latency"
		figures = append(figures, overview)
		figures = append(figures, r.distributionFigures("Latency distribution of "+c.name, c.name, c.distribution)...)
	}
	return figures
}

// supported leaves out the percentiles beyond which there are too few, and all of none.
func supported(p *percentiles, d []percentile) percentiles {
	none := math.NaN()
	if p == nil {
		return percentiles{none, none, none, none, none}
	}
	of := *p
	last := 0.0
	if len(d) > 0 {
		last = d[len(d)-1].Percentile
	}
	for _, q := range []struct {
		percentile float64
		value      *float64
	}{{50, &of.P50}, {90, &of.P90}, {99, &of.P99}, {99.9, &of.P999}} {
		if q.percentile > last {
			*q.value = none
		}
	}
	return of
}

// barsOfRows makes a figure with a bar for each row.
type barsOfRows func(title, text, axis string, unit page.Unit, of func(r *row) float64) page.Figure

// stalenessSteps is into how many steps staleness is told apart.
const stalenessSteps = 25

// stalenessFigures show how many answers were stale, and by how much; none where no answer
// was.
func (r *report) stalenessFigures(bars barsOfRows) []page.Figure {
	most := 0.0
	for i := range r.Rows {
		if s := r.Rows[i].stalest; s != nil && s.count() > 0 {
			most = max(most, s.quantile(1).Seconds())
		}
	}
	if most == 0 {
		return nil
	}
	over := page.Figure{
		Title: "Staleness: how long past fresh",
		Text:  "The share of all reads whose answer was staler than so long: where a line begins is the share of stale answers, and where it ends is the stalest. Rows without a line had no stale answer.",
		X:     page.Axis{Name: "time past fresh", Unit: page.Seconds},
		Y:     page.Axis{Name: "share of reads that are staler", Unit: page.Share},
		Kind:  page.Lines,
	}
	if r.ofDocuments() {
		over.Title, over.X.Name = "Staleness: age of stale answers", "age, from when the load began"
		over.Text = "The share of all reads whose answer was stale and older than so long: where a line begins is the share of stale answers, and where it ends is the oldest. Rows without a line had no stale answer."
	}
	names := r.rowNames()
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.stalest == nil || row.Stale == 0 {
			continue
		}
		s := page.Series{Name: names[i]}
		for n := range stalenessSteps + 1 {
			at := most * float64(n) / stalenessSteps
			staler := row.stalest.above(seconds(at))
			s.Points = append(s.Points, page.Point{X: at, Y: ratio(staler, row.Requests)})
			if staler == 0 {
				break
			}
		}
		over.Series = append(over.Series, s)
	}
	return []page.Figure{
		bars("Stale answers", "Share of the reads that were answered with a value past its TTL.", "share of reads", page.Share,
			func(r *row) float64 { return ratio(r.Stale, r.Requests) }),
		over,
	}
}
