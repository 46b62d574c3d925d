package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// writeTable writes the report for people: what was measured on what, the rows, and
// how to read them.
func (r *report) writeTable(w io.Writer, s *settings) error {
	var b strings.Builder
	r.writeHead(&b, s)
	r.writeRows(&b)
	r.writeNotes(&b)
	r.writeKey(&b, s)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *report) writeHead(b *strings.Builder, s *settings) {
	e := &r.Environment
	fmt.Fprintf(b, "%s, %s, %d CPUs; seed %d\n", e.Go, e.System, e.CPUs, s.Seed)
	fmt.Fprintf(b, "workload  %s, %d-byte values; %v reads/s for %vs after %vs of warm-up\n",
		s.workloadLabel(e.Workload.Keys), s.ValueSize, s.Rate, s.Seconds, s.WarmupSeconds)
	if r.ofDocuments() {
		r.writeDocuments(b)
		return
	}
	fmt.Fprintf(b, "cache     ttl %v; swr serves stale for %v more; xfetch beta %v; origin %s\n", s.TTL, s.Stale, s.Beta, s.originLabel())
	fmt.Fprintf(b, "tiers     l1 lru of %d entries; l2 ristretto of %d entries\n", s.L1Entries, s.L2Entries)
	for _, l3 := range e.L3 {
		fmt.Fprintf(b, "          l3 %s\n", l3)
	}
	b.WriteString("\n")
}

// writeDocuments writes what the documents say of the caches.
func (r *report) writeDocuments(b *strings.Builder) {
	fmt.Fprintf(b, "origin    %s\n", r.Environment.Origin.Does)
	for _, d := range r.Environment.Config {
		fmt.Fprintf(b, "caches    of %s\n", d.File)
		for _, c := range d.Caches {
			fmt.Fprintf(b, "          %s\n", c)
		}
	}
	b.WriteString("\n")
}

// ofDocuments reports whether the rows are caches of documents.
func (r *report) ofDocuments() bool { return len(r.Environment.Config) > 0 }

// column is one of the table's.
type column = columnOf[row]

// columns returns the table's columns: what a row is, what it did, what it cost.
func (r *report) columns() []column {
	return slices.Concat(r.leadingColumns(), r.changeColumns(), r.goroutineColumns(), r.heapColumns())
}

// leadingColumns are those of all reports.
func (r *report) leadingColumns() []column {
	columns := r.combinationColumns()
	if r.ofDocuments() {
		columns = r.documentColumns()
	}
	columns = append(columns,
		column{"hits %", 7, func(r *row) string { return percent(r.HitRatio) }},
		column{"reads/s", 10, func(r *row) string { return fmt.Sprintf("%.0f", r.Throughput) }},
		column{"p50", 9, func(r *row) string { return short(r.Latency.P50) }},
		column{"p99", 9, func(r *row) string { return short(r.Latency.P99) }},
		column{"p99.9", 9, func(r *row) string { return short(r.Latency.P999) }},
		column{"origin", 7, func(r *row) string { return fmt.Sprint(r.OriginCalls) }},
		column{"peak", 5, func(r *row) string { return fmt.Sprint(r.OriginPeak) }},
		column{"slow", 6, func(r *row) string { return fmt.Sprint(r.Slow) }},
		column{"oldest", 8, func(r *row) string { return fmt.Sprintf("%.2fs", r.Oldest) }},
	)
	if r.Environment.Origin.Kind != "fixed" {
		columns = append(columns, column{"failed", 7, func(r *row) string { return fmt.Sprint(r.Failed) }})
	}
	return columns
}

// goroutineColumns are those of further closed loops.
func (r *report) goroutineColumns() []column {
	var columns []column
	if len(r.Rows) == 0 {
		return nil
	}
	for i, t := range r.Rows[0].Goroutines {
		columns = append(columns, column{fmt.Sprintf("/s by %d", t.Goroutines), 10, func(r *row) string {
			return fmt.Sprintf("%.0f", r.Goroutines[i].PerSecond)
		}})
	}
	return columns
}

// heapColumns is there where heap is measured.
func (r *report) heapColumns() []column {
	if r.ofDocuments() {
		return nil
	}
	return []column{{"heap/entry", 11, func(r *row) string {
		if r.HeapPerEntry > 0 {
			return fmt.Sprintf("%.0f B", r.HeapPerEntry)
		}
		return "-"
	}}}
}

// changeColumns are those of writes and deletes, where there are any.
func (r *report) changeColumns() []column {
	var columns []column
	for _, c := range r.changes() {
		for _, q := range []struct {
			name string
			of   func(p *percentiles) float64
		}{
			{"p50", func(p *percentiles) float64 { return p.P50 }},
			{"p99", func(p *percentiles) float64 { return p.P99 }},
		} {
			columns = append(columns, column{c.short + " " + q.name, 9, func(r *row) string {
				if p := c.latency(r); p != nil {
					return short(q.of(p))
				}
				return "-"
			}})
		}
	}
	return columns
}

func (r *report) combinationColumns() []column {
	columns := []column{
		{"tiers", r.widest("tiers", func(r *row) string { return r.Combination }), func(r *row) string { return r.Combination }},
		{"refresh", -8, func(r *row) string { return r.Policy }},
	}
	for _, t := range tierNames {
		columns = append(columns, column{t + " %", 6, func(r *row) string {
			if !strings.Contains(r.Combination, t) {
				return "-"
			}
			return percent(ratio(r.Hits[t], r.Requests))
		}})
	}
	return columns
}

// documentColumns are those of caches of documents, whose tiers have names of their
// own, so that their hits stand in the order of the tiers.
func (r *report) documentColumns() []column {
	name := func(row *row) string { return row.cacheName(len(r.Environment.Config) > 1) }
	columns := []column{
		{"cache", r.widest("cache", name), name},
		{"tiers", r.widest("tiers", (*row).tierNames), (*row).tierNames},
		{"refresh", r.widest("refresh", func(r *row) string { return r.Policy }), func(r *row) string { return r.Policy }},
	}
	most := 0
	for _, row := range r.Rows {
		most = max(most, len(row.Tiers))
	}
	for i := range most {
		columns = append(columns, column{ordinal(i+1) + " %", 6, func(r *row) string {
			if i >= len(r.Tiers) {
				return "-"
			}
			return percent(ratio(r.Hits[r.Tiers[i].Name], r.Requests))
		}})
	}
	return columns
}

// widest returns the width of a column of texts.
func (r *report) widest(head string, cell func(*row) string) int {
	wide := len(head)
	for i := range r.Rows {
		wide = max(wide, utf8.RuneCountInString(cell(&r.Rows[i])))
	}
	return -(wide + 1)
}

func ordinal(n int) string {
	if n <= 3 {
		return []string{"1st", "2nd", "3rd"}[n-1]
	}
	return fmt.Sprintf("%dth", n)
}

func (r *report) writeRows(b *strings.Builder) {
	columns := r.columns()
	line := func(cell func(column) string) {
		for i, c := range columns {
			if i > 0 {
				b.WriteString(" ")
			}
			fmt.Fprintf(b, "%*s", c.width, cell(c))
		}
		b.WriteString("\n")
	}
	line(func(c column) string { return c.name })
	for i := range r.Rows {
		row := &r.Rows[i]
		if i > 0 && !r.ofDocuments() && row.Combination != r.Rows[i-1].Combination {
			b.WriteString("\n")
		}
		line(func(c column) string { return c.cell(row) })
	}
	b.WriteString("\n")
}

func (r *report) writeNotes(b *strings.Builder) {
	for _, note := range r.Environment.Notes {
		fmt.Fprintf(b, "! %s\n", note)
	}
	if len(r.Environment.Notes) > 0 {
		b.WriteString("\n")
	}
}

func (r *report) writeKey(b *strings.Builder, s *settings) {
	fmt.Fprintf(b, "How to read it\n")
	if r.ofDocuments() {
		fmt.Fprintf(b, "  tiers, refresh    what runs, by the cache's own statistics: each tier with its eviction, if it is in memory\n")
		fmt.Fprintf(b, "  1st.. %%, hits %%   share of the reads answered by each tier, and by any, fresh or stale; the rest waited for the origin\n")
	} else {
		fmt.Fprintf(b, "  l1..l3 %%, hits %%  share of the reads answered by each tier, and by any, fresh or stale; the rest waited for the origin\n")
	}
	fmt.Fprintf(b, "  p50..p99.9        from when a read was meant to start (open loop at %v reads/s), so waits in line count; a read that does\n", s.Rate)
	fmt.Fprintf(b, "                    nothing has p50 %s, p99 %s here: differences of that size are the machine's\n", short(r.Environment.Pace.P50), short(r.Environment.Pace.P99))
	if len(r.changes()) > 0 {
		fmt.Fprintf(b, "  set.., del..      the same of writes and of deletes, which are not among the reads\n")
	}
	fmt.Fprintf(b, "  origin, peak      loads in the open loop, and the most at once; slow: reads over %v; oldest: age of the oldest value served\n", s.Slow)
	if r.Environment.Origin.Kind != "fixed" {
		fmt.Fprintf(b, "  failed            reads answered with an error, as the origin failed or refused; they are among the misses\n")
	}
	fmt.Fprintf(b, "  reads/s           closed loop: %d workers for %vs, each beginning its next read when it has its last\n", s.Concurrency, s.ClosedSeconds)
	if !r.ofDocuments() {
		fmt.Fprintf(b, "  heap/entry        of this process, for an entry (with key and value) that each in-memory tier holds\n")
	}
}

func percent(share float64) string { return fmt.Sprintf("%.1f", 100*share) }

// short writes seconds with three significant digits and a unit.
func short(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d >= unit.of {
			v := d.Seconds() / unit.of.Seconds()
			switch {
			case v >= 100:
				return fmt.Sprintf("%.0f%s", v, unit.name)
			case v >= 10:
				return fmt.Sprintf("%.1f%s", v, unit.name)
			default:
				return fmt.Sprintf("%.2f%s", v, unit.name)
			}
		}
	}
	return fmt.Sprintf("%dns", d)
}
