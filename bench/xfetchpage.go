package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/terracecache/terrace/bench/internal/lab"
	"github.com/terracecache/terrace/bench/internal/page"
)

// page returns the report as one.
func (r *xfetchReport) page(ctx context.Context) *page.Report {
	e := &r.Environment
	p := e.pageOf(ctx, "XFetch: how likely a read starts a refresh", fmt.Sprintf(
		"beta %v; the value's last load took %v; %d reads for each row, by the cache's own decision.", e.Beta, seconds(e.Delta), e.Draws))
	p.Facts = append(p.Facts,
		page.Fact{Name: "beta", Value: fmt.Sprint(e.Beta)},
		page.Fact{Name: "delta", Value: seconds(e.Delta).String()},
		page.Fact{Name: "Reads a row", Value: fmt.Sprint(e.Draws)},
	)
	p.Results = pageTable("Share of reads that start a refresh", xfetchColumns, r.Rows)
	rows := slices.SortedFunc(slices.Values(r.Rows), func(a, b xfetchRow) int { return cmp.Compare(a.Before, b.Before) })
	formula, drawn := page.Series{Name: "formula", Tone: page.Bound}, page.Series{Name: "drawn", Loose: true}
	var at []float64
	for _, row := range rows {
		at = append(at, row.Before)
		formula.Points = append(formula.Points, page.Point{X: row.Before, Y: row.Formula})
		drawn.Points = append(drawn.Points, page.Point{X: row.Before, Y: row.Share})
	}
	if last := len(at) - 1; last > 0 { // the curve between the rows
		const parts = 100
		for i := 1; i < parts; i++ {
			before := at[0] + (at[last]-at[0])*float64(i)/parts
			formula.Points = append(formula.Points, page.Point{X: before, Y: lab.RefreshFormula(e.Beta, seconds(before), seconds(e.Delta))})
		}
		slices.SortFunc(formula.Points, func(a, b page.Point) int { return cmp.Compare(a.X, b.X) })
	}
	p.Sections = []page.Section{{Figures: []page.Figure{{
		Title:  "Chance of a refresh",
		Text:   "The formula is exp(-before / (beta × delta)). One read decides alone; of n reads a second the first to decide for it refreshes for all.",
		Kind:   page.Lines,
		X:      page.Axis{Name: "time before the value's end", Unit: page.Seconds},
		Y:      page.Axis{Name: "reads that start a refresh", Unit: page.Share},
		Series: []page.Series{formula, drawn}, TableAt: at,
	}}}}
	p.Configs = []page.Config{{Name: "xfetch", Text: fmt.Sprintf("refresh: {policy: xfetch, beta: %v}", e.Beta)}}
	return p
}
