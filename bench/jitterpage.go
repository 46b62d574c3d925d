package main

import (
	"context"
	"fmt"

	"github.com/terracecache/terrace/bench/internal/page"
)

// page returns the report as one.
func (r *jitterReport) page(ctx context.Context) *page.Report {
	e := &r.Environment
	p := e.pageOf(ctx, "Jitter: keys that end together", fmt.Sprintf(
		"%d keys filled at second 0 with a TTL of %v, each asked for once a second; the mean of %d simulated runs.", e.Keys, seconds(e.TTL), e.Seeds))
	p.Facts = append(p.Facts,
		page.Fact{Name: "Keys", Value: fmt.Sprint(e.Keys)},
		page.Fact{Name: "TTL", Value: seconds(e.TTL).String()},
		page.Fact{Name: "Cycles", Value: fmt.Sprint(e.Cycles)},
		page.Fact{Name: "Runs a row", Value: fmt.Sprint(e.Seeds)},
	)
	p.Results = pageTable("Loads in the busiest second", r.columns(), r.Rows)
	f := page.Figure{
		Title: "The busiest second",
		Text:  "Loads in the busiest second of each cycle, in which every key is loaded again once. The dashed line is what it would be if loads were spread evenly.",
		Kind:  page.Lines,
		X:     page.Axis{Name: "cycle", Unit: page.Count},
		Y:     page.Axis{Name: "loads in the busiest second", Unit: page.Count, Log: true},
	}
	if e.Cycles > 1 {
		f.X.Least, f.X.Most = 1, float64(e.Cycles)
	}
	for _, row := range r.Rows {
		s := page.Series{Name: fmt.Sprintf("jitter %v", row.Jitter)}
		for i, n := range row.Busiest {
			s.Points = append(s.Points, page.Point{X: float64(i + 1), Y: n})
		}
		f.Series = append(f.Series, s)
		p.Configs = append(p.Configs, page.Config{
			Name: fmt.Sprintf("jitter %v", row.Jitter),
			Text: fmt.Sprintf("lifetime: {ttl: %v, jitter: %s%%}", seconds(e.TTL), trimmed(100*row.Jitter)),
		})
	}
	if last := len(r.Rows) - 1; last >= 0 {
		even := page.Series{Name: "spread evenly", Tone: page.Bound}
		for i := range r.Rows[last].Busiest {
			even.Points = append(even.Points, page.Point{X: float64(i + 1), Y: r.Rows[last].Average})
		}
		f.Series = append(f.Series, even)
	}
	p.Sections = []page.Section{{Figures: []page.Figure{f}}}
	return p
}

// trimmed writes a number without the noise of its binary form.
func trimmed(v float64) string { return page.Number.Text(v) }
