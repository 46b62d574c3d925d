package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/terracecache/terrace/bench/internal/page"
)

// page returns the report as one.
func (r *stampedeReport) page(ctx context.Context) *page.Report {
	e := &r.Environment
	p := e.pageOf(ctx, "Stampedes: what protects the origin", fmt.Sprintf(
		"%v requests/s for %vs on one key (%s arrivals), which is fresh for %v. A query of the origin takes %v; it runs %d at once and refuses more.",
		e.Rate, e.Seconds, e.Arrivals, seconds(e.TTL), seconds(e.Latency), e.Capacity))
	p.Facts = append(p.Facts,
		page.Fact{Name: "Arrivals", Value: fmt.Sprintf("%s, %v/s for %vs", e.Arrivals, e.Rate, e.Seconds)},
		page.Fact{Name: "TTL", Value: seconds(e.TTL).String()},
		page.Fact{Name: "swr serves stale for", Value: seconds(e.Stale).String()},
		page.Fact{Name: "Origin", Value: fmt.Sprintf("%v a query, %d at once", seconds(e.Latency), e.Capacity)},
		page.Fact{Name: "Slow above", Value: seconds(e.Slow).String()},
		page.Fact{Name: "Requests came late by", Value: fmt.Sprintf("at most %s", short(e.Late))},
	)
	if len(r.Rows) > 0 {
		p.Results = pageTable("Strategies", stampedeColumns, r.Rows)
		p.Sections = append(p.Sections, page.Section{Figures: r.strategyFigures()})
	}
	if len(r.Cases) > 0 {
		p.Sections = append(p.Sections, r.casesSection())
	}
	for _, row := range r.Rows {
		p.Configs = append(p.Configs, page.Config{Name: row.Strategy, Text: row.config(e)})
	}
	return p
}

func (r *stampedeReport) strategyFigures() []page.Figure {
	e := &r.Environment
	var names []string
	var latencies []percentiles
	over := page.Figure{
		Title: "Origin calls over time",
		Text:  "Calls of the origin since the start. Each step is a value's end: the higher it is, the more readers asked at once.",
		Kind:  page.Lines,
		X:     page.Axis{Name: "time since the start", Unit: page.Seconds},
		Y:     page.Axis{Name: "origin calls, summed up", Unit: page.Count},
	}
	const tableRows = 20
	for i := range tableRows + 1 {
		over.TableAt = append(over.TableAt, e.Lasted*float64(i)/tableRows)
	}
	for _, row := range r.Rows {
		names = append(names, row.Strategy)
		latencies = append(latencies, row.Latency)
		over.Series = append(over.Series, page.Series{Name: row.Strategy, Step: true, Points: summedUp(row.Calls, e.Lasted)})
	}
	return []page.Figure{
		over,
		{
			Title: "Origin calls",
			Text:  "All calls of the run, those that the origin refused included.",
			Kind:  page.Bars, Categories: names, ColorsOf: names,
			Y:      page.Axis{Name: "calls", Unit: page.Count},
			Series: []page.Series{{Name: "origin calls", Values: valuesOf(r.Rows, func(r *stampedeRow) float64 { return float64(r.OriginCalls) })}},
		},
		{
			Title: "Most calls at once",
			Text:  "What the origin must bear at one time.",
			Kind:  page.Bars, Categories: names, ColorsOf: names,
			Y:      page.Axis{Name: "calls at once", Unit: page.Count},
			Series: []page.Series{{Name: "peak", Values: valuesOf(r.Rows, func(r *stampedeRow) float64 { return float64(r.OriginPeak) })}},
			Marks:  r.capacityMark(),
		},
		latencyFigure("From when a request came. The nearer to the left the better; the tail is who waits for the origin.", names, latencies),
		{
			Title: "Slow reads",
			Text:  fmt.Sprintf("Reads that took longer than %v.", seconds(e.Slow)),
			Kind:  page.Bars, Categories: names, ColorsOf: names,
			Y:      page.Axis{Name: "reads", Unit: page.Count},
			Series: []page.Series{{Name: "slow reads", Values: valuesOf(r.Rows, func(r *stampedeRow) float64 { return float64(r.Slow) })}},
		},
		{
			Title: "Staleness: age of the oldest value served",
			Text:  "Counted from when its query began. Beyond the TTL a reader saw what a reload would have replaced.",
			Kind:  page.Bars, Categories: names, ColorsOf: names,
			Y:      page.Axis{Name: "age", Unit: page.Seconds},
			Series: []page.Series{{Name: "oldest", Values: valuesOf(r.Rows, func(r *stampedeRow) float64 { return r.Oldest })}},
			Marks:  []page.Mark{{Name: "TTL", At: e.TTL}},
		},
	}
}

// capacityMark marks the origin's capacity, where it is near enough to be seen beside
// what happened.
func (r *stampedeReport) capacityMark() []page.Mark {
	most := 0
	for _, row := range r.Rows {
		most = max(most, row.OriginPeak)
	}
	if r.Environment.Capacity > 3*most {
		return nil
	}
	return []page.Mark{{Name: "capacity", At: float64(r.Environment.Capacity)}}
}

// mostPoints bounds what a page draws of one series.
const mostPoints = 1000

// summedUp returns how many calls there were up to each, and up to the end. Of more than
// can be told apart on a page it keeps one a pixel or so.
func summedUp(calls []float64, end float64) []page.Point {
	points := []page.Point{{}}
	for i, at := range calls {
		last := &points[len(points)-1]
		if len(calls) > mostPoints && at-last.X < end/mostPoints && len(points) > 1 {
			last.Y = float64(i + 1)
			continue
		}
		points = append(points, page.Point{X: at, Y: float64(i + 1)})
	}
	if last := points[len(points)-1]; end > last.X {
		points = append(points, page.Point{X: end, Y: last.Y})
	}
	return points
}

func (r *stampedeReport) casesSection() page.Section {
	f := page.Figure{
		Title: "Origin calls, here and as published",
		Kind:  page.Bars,
		Y:     page.Axis{Name: "origin calls", Unit: page.Count},
	}
	here, published := page.Series{Name: "here"}, page.Series{Name: "published", Tone: page.Miss}
	for _, row := range r.Cases {
		f.Categories = append(f.Categories, row.Case)
		here.Values = append(here.Values, float64(row.OriginCalls))
		calls := math.NaN()
		if row.Published != nil {
			calls = float64(*row.Published)
		}
		published.Values = append(published.Values, calls)
	}
	f.Series = []page.Series{here, published}
	s := page.Section{
		Heading: "Published experiments",
		Text:    fmt.Sprintf("The origin takes 200ms; a reader reads every %v or so.", seconds(r.Environment.Pause)),
		Figures: []page.Figure{f},
		Tables:  []page.Table{pageTable("What they are", caseColumns, r.Cases)},
	}
	if len(r.Spread) > 0 {
		s.Figures = append(s.Figures, r.spreadFigure())
	}
	return s
}

func (r *stampedeReport) spreadFigure() page.Figure {
	first := r.Spread[0]
	f := page.Figure{
		Title: "Where the lives of keys end that were written together",
		Text:  fmt.Sprintf("%d keys with a TTL of %v, by tenths of that ± 10 %%.", first.Keys, seconds(first.TTL)),
		Kind:  page.Bars,
		Y:     page.Axis{Name: "keys", Unit: page.Count},
	}
	for i := range first.Tenths {
		from := first.TTL * (0.9 + 0.02*float64(i))
		f.Categories = append(f.Categories, fmt.Sprintf("%.1f–%.1f s", from, from+0.02*first.TTL))
	}
	for _, row := range r.Spread {
		s := page.Series{Name: fmt.Sprintf("jitter %v", row.Jitter)}
		for _, n := range row.Tenths {
			s.Values = append(s.Values, float64(n))
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// config says what the strategy was made of, as a document of caches does where it is a
// cache.
func (r *stampedeRow) config(e *stampedeEnvironment) string {
	life := "ttl: " + seconds(e.TTL).String()
	stale := ", stale_while_revalidate: " + seconds(e.Stale).String()
	document := func(lifetime, refresh string) string {
		return "# " + r.Does + "\n" + fmt.Sprintf("lifetime: {%s}\nrefresh: {%s}", lifetime, refresh)
	}
	switch r.Strategy {
	case "naive":
		return "# " + r.Does + "\n# no cache of this library: a store whose values live for " + seconds(e.TTL).String()
	case "swr":
		return document(life+stale, "policy: swr")
	case "swr-jitter":
		return document(life+", jitter: 10%"+stale, "policy: swr")
	case "xfetch-1":
		return document(life, "policy: xfetch, beta: 1")
	case "xfetch-2":
		return document(life, "policy: xfetch, beta: 2")
	}
	text := document(life, "policy: fixed")
	if strings.HasPrefix(r.Strategy, "lease-") {
		text += "\nlease: 1s"
	}
	return text
}
