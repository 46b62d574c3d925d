package main

import (
	"fmt"
	"io"
	"strings"
	"time"
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
	fmt.Fprintf(b, "workload  zipf %v over %d keys, %d-byte values; %v reads/s for %vs after %vs of warm-up\n",
		s.Skew, s.Keys, s.ValueSize, s.Rate, s.Seconds, s.WarmupSeconds)
	fmt.Fprintf(b, "cache     ttl %v; swr serves stale for %v more; xfetch beta %v; origin takes %v\n", s.TTL, s.Stale, s.Beta, s.OriginLatency)
	fmt.Fprintf(b, "tiers     l1 lru of %d entries; l2 ristretto of %d entries\n", s.L1Entries, s.L2Entries)
	for _, l3 := range e.L3 {
		fmt.Fprintf(b, "          l3 %s\n", l3)
	}
	b.WriteString("\n")
}

// columns are the table's, with the width of each. The first two are texts.
var columns = []struct {
	name  string
	width int
}{
	{"refresh", -8}, {"l1 %", 6}, {"l2 %", 6}, {"l3 %", 6}, {"hits %", 7}, {"reads/s", 10},
	{"p50", 9}, {"p99", 9}, {"p99.9", 9}, {"origin", 7}, {"peak", 5}, {"slow", 6}, {"oldest", 8}, {"heap/entry", 11},
}

func (r *report) writeRows(b *strings.Builder) {
	wide := len("tiers")
	for _, row := range r.Rows {
		wide = max(wide, len(row.Combination))
	}
	line := func(first string, cells []string) {
		fmt.Fprintf(b, "%-*s", wide+1, first)
		for i, cell := range cells {
			fmt.Fprintf(b, " %*s", columns[i].width, cell)
		}
		b.WriteString("\n")
	}
	var heads []string
	for _, c := range columns {
		heads = append(heads, c.name)
	}
	line("tiers", heads)
	for i, row := range r.Rows {
		if i > 0 && row.Combination != r.Rows[i-1].Combination {
			b.WriteString("\n")
		}
		line(row.Combination, row.cells())
	}
	b.WriteString("\n")
}

// cells returns the row's cells in the order of columns.
func (r *row) cells() []string {
	cells := []string{r.Policy}
	for _, t := range tierNames {
		if !strings.Contains(r.Combination, t) {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, percent(ratio(r.Hits[t], r.Requests)))
	}
	heap := "-"
	if r.HeapPerEntry > 0 {
		heap = fmt.Sprintf("%.0f B", r.HeapPerEntry)
	}
	return append(cells,
		percent(r.HitRatio), fmt.Sprintf("%.0f", r.Throughput),
		short(r.Latency.P50), short(r.Latency.P99), short(r.Latency.P999),
		fmt.Sprint(r.OriginCalls), fmt.Sprint(r.OriginPeak), fmt.Sprint(r.Slow),
		fmt.Sprintf("%.2fs", r.Oldest), heap)
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
	fmt.Fprintf(b, "  l1..l3 %%, hits %%  share of the reads answered by each tier, and by any, fresh or stale; the rest waited for the origin\n")
	fmt.Fprintf(b, "  p50..p99.9        from when a read was meant to start (open loop at %v reads/s), so waits in line count; a read that does\n", s.Rate)
	fmt.Fprintf(b, "                    nothing has p50 %s, p99 %s here: differences of that size are the machine's\n", short(r.Environment.Pace.P50), short(r.Environment.Pace.P99))
	fmt.Fprintf(b, "  origin, peak      loads in the open loop, and the most at once; slow: reads over %v; oldest: age of the oldest value served\n", s.Slow)
	fmt.Fprintf(b, "  reads/s           closed loop: %d workers for %vs, each beginning its next read when it has its last\n", s.Concurrency, s.ClosedSeconds)
	fmt.Fprintf(b, "  heap/entry        of this process, for an entry (with key and value) that each in-memory tier holds\n")
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
