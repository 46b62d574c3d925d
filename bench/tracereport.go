package main

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/replay"
	"github.com/terracecache/terrace/bench/internal/trace"
)

// traceReport is all that the replays found.
type traceReport struct {
	Environment traceEnvironment `json:"environment"`
	Rows        []traceRow       `json:"rows"`
}

// traceEnvironment is what the rows depend on beside their own fields.
type traceEnvironment struct {
	Go         string        `json:"go"`
	System     string        `json:"system"`
	CPUs       int           `json:"cpus"`
	Began      string        `json:"began"` // RFC 3339
	Seed       uint64        `json:"seed"`
	Complete   bool          `json:"complete"`
	Violations []string      `json:"violations"` // rows that no cache of their size could have
	Traces     []traceOfRows `json:"traces"`
}

// traceOfRows is what a trace is.
type traceOfRows struct {
	Trace          string   `json:"trace"`
	Format         string   `json:"format"`
	Compression    string   `json:"compression"` // empty: none
	Requests       int64    `json:"requests"`
	Keys           int64    `json:"keys"`
	Reads          int64    `json:"reads"`
	Writes         int64    `json:"writes"`
	Deletes        int64    `json:"deletes"`
	Malformed      int64    `json:"malformed"`       // lines or records that were left out
	FirstMalformed []string `json:"first_malformed"` // which, and why
	Error          string   `json:"error,omitempty"` // why not all of it could be read
	Notes          []string `json:"notes"`
}

func (t *traceOfRows) count(rec *capture.Trace) {
	c := rec.Counts()
	t.Requests, t.Reads, t.Writes, t.Deletes = c.Requests, c.Reads, c.Writes, c.Deletes
}

func (t *traceOfRows) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(t.Notes, note) {
		t.Notes = append(t.Notes, note)
	}
}

// traceRow is what one policy or combination did with a trace. Ratios are shares of 1,
// and nil where the trace does not say what they need.
type traceRow struct {
	Trace        string         `json:"trace"`
	Policy       string         `json:"policy"`
	Size         int64          `json:"size"` // of all tiers together
	Unit         string         `json:"unit"` // of size and held: "entries" or "bytes"
	Requests     int64          `json:"requests"`
	Hits         int64          `json:"hits"`
	HitRatio     float64        `json:"hit_ratio"`
	ReadHits     *int64         `json:"read_hits"`
	ReadHitRatio *float64       `json:"read_hit_ratio"`
	ByteHitRatio *float64       `json:"byte_hit_ratio"`
	CostHitRatio *float64       `json:"cost_hit_ratio"`
	Held         *int64         `json:"held"` // the most that it was seen to hold; nil for the bound
	Tiers        []traceTierRow `json:"tiers"`
	Malformed    int64          `json:"malformed"`
	Seconds      float64        `json:"seconds"` // that the replay took
}

// traceTierRow is what one tier did.
type traceTierRow struct {
	Name     string  `json:"name"`
	Policy   string  `json:"policy"`
	Size     int64   `json:"size"`
	Hits     int64   `json:"hits"`
	HitRatio float64 `json:"hit_ratio"` // of all requests
	Held     int64   `json:"held"`
}

func newTraceReport(s *traceSettings) *traceReport {
	return &traceReport{
		Environment: traceEnvironment{
			Go:         runtime.Version(),
			System:     runtime.GOOS + "/" + runtime.GOARCH,
			CPUs:       runtime.GOMAXPROCS(0),
			Began:      time.Now().Format(time.RFC3339),
			Seed:       s.Seed,
			Violations: []string{},
			Traces:     []traceOfRows{},
		},
		Rows: []traceRow{},
	}
}

// fill takes over what was counted.
func (r *traceRow) fill(t *capture.Tally, of trace.Fields) {
	r.Requests, r.Hits, r.HitRatio = t.Requests, t.Hits, ratio64(t.Hits, t.Requests)
	if of.Ops {
		r.ReadHits = &t.ReadHits
		if t.Reads > 0 {
			r.ReadHitRatio = share(float64(t.ReadHits), float64(t.Reads))
		}
	}
	if of.Sizes {
		r.ByteHitRatio = share(t.HitBytes, t.Bytes)
	}
	if of.Costs {
		r.CostHitRatio = share(t.HitCost, t.Cost)
	}
}

// share returns n/of, or nil where there is nothing to have a share of.
func share(n, of float64) *float64 {
	if of == 0 {
		return nil
	}
	v := n / of
	return &v
}

func (r *traceRow) fillTiers(tiers []replay.TierResult) {
	held := int64(0)
	for _, t := range tiers {
		held += t.Held
		r.Tiers = append(r.Tiers, traceTierRow{
			Name: t.Name, Policy: t.Policy, Size: t.Size,
			Hits: t.Hits, HitRatio: ratio64(t.Hits, r.Requests), Held: t.Held,
		})
	}
	r.Held = &held
}

// traceBound is what a bound is of.
type traceBound struct {
	size  int64
	bytes bool
}

func (r *traceRow) bound() traceBound { return traceBound{r.Size, r.Unit == "bytes"} }

// violations tells what of the row cannot be.
func (r *traceRow) violations(bounds map[traceBound]int64) (all []string) {
	for _, t := range r.Tiers {
		if t.Held > t.Size {
			all = append(all, fmt.Sprintf("%s: %s of %d %s held %d", r.Trace, t.Policy, t.Size, r.Unit, t.Held))
		}
	}
	if best, known := bounds[r.bound()]; known && r.Hits > best {
		all = append(all, fmt.Sprintf("%s: %s of %s had %d hits, and no cache of that size can have more than %d", r.Trace, r.Policy, r.size(), r.Hits, best))
	}
	return all
}

// size is the size with its unit.
func (r *traceRow) size() string {
	if r.Unit == "bytes" {
		return bytesText(r.Size)
	}
	return fmt.Sprint(r.Size)
}

// bytesText writes bytes with the greatest unit that leaves nothing over.
func bytesText(n int64) string {
	for _, unit := range []string{"TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "KB"} {
		if of := int64(byteUnits[strings.ToUpper(unit)]); n%of == 0 {
			return fmt.Sprintf("%d%s", n/of, unit)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// writeTable writes the report for people.
func (r *traceReport) writeTable(w io.Writer) error {
	var b strings.Builder
	e := &r.Environment
	fmt.Fprintf(&b, "%s, %s, %d CPUs; seed %d\n", e.Go, e.System, e.CPUs, e.Seed)
	for i := range e.Traces {
		b.WriteString("\n")
		r.writeTrace(&b, &e.Traces[i])
	}
	b.WriteString("\n")
	notes := e.Violations
	if !e.Complete {
		notes = append(slices.Clone(notes), "not all of it was done")
	}
	for _, note := range notes {
		fmt.Fprintf(&b, "! %s\n", note)
	}
	if len(notes) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(traceKeyText)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *traceReport) writeTrace(b *strings.Builder, t *traceOfRows) {
	packed := ""
	if t.Compression != "" {
		packed = ", " + t.Compression
	}
	fmt.Fprintf(b, "%s  %s%s: %d requests of %d keys", filepath.Base(t.Trace), t.Format, packed, t.Requests, t.Keys)
	if t.Writes+t.Deletes > 0 {
		fmt.Fprintf(b, ", %d of them writes, %d deletions", t.Writes, t.Deletes)
	}
	b.WriteString("\n")
	if t.Malformed > 0 {
		fmt.Fprintf(b, "! %d malformed, which are left out; the first: %s\n", t.Malformed, oneLine(t.FirstMalformed[0]))
	}
	if t.Error != "" {
		fmt.Fprintf(b, "! %s\n", t.Error)
	}
	for _, note := range t.Notes {
		fmt.Fprintf(b, "! %s\n", note)
	}
	var rows []*traceRow
	for i := range r.Rows {
		if r.Rows[i].Trace == t.Trace {
			rows = append(rows, &r.Rows[i])
		}
	}
	if len(rows) == 0 {
		return
	}
	b.WriteString("\n")
	writeTraceRows(b, rows)
}

// traceColumn is one of the table's.
type traceColumn struct {
	name string
	left bool
	cell func(*traceRow) string
}

var traceColumns = []traceColumn{
	{"size", false, (*traceRow).size},
	{"policy", true, func(r *traceRow) string { return r.Policy }},
	{"hits", false, func(r *traceRow) string { return fmt.Sprint(r.Hits) }},
	{"hit %", false, func(r *traceRow) string { return hundredth(&r.HitRatio) }},
	{"reads %", false, func(r *traceRow) string { return hundredth(r.ReadHitRatio) }},
	{"bytes %", false, func(r *traceRow) string { return hundredth(r.ByteHitRatio) }},
	{"cost %", false, func(r *traceRow) string { return hundredth(r.CostHitRatio) }},
	{"by tier %", true, func(r *traceRow) string {
		if len(r.Tiers) < 2 {
			return "-"
		}
		var parts []string
		for _, t := range r.Tiers {
			parts = append(parts, t.Name+" "+hundredth(&t.HitRatio))
		}
		return strings.Join(parts, ", ")
	}},
}

// hundredth writes a share in percent, with two digits.
func hundredth(share *float64) string {
	if share == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", 100**share)
}

// usedTraceColumns returns the columns that have something.
func usedTraceColumns(rows []*traceRow) []traceColumn {
	return slices.DeleteFunc(slices.Clone(traceColumns), func(c traceColumn) bool {
		return !slices.ContainsFunc(rows, func(r *traceRow) bool { return c.cell(r) != "-" })
	})
}

// writeTraceRows writes the rows of one trace.
func writeTraceRows(b *strings.Builder, rows []*traceRow) {
	columns := usedTraceColumns(rows)
	line := func(cell func(c traceColumn) string) {
		var cells []string
		for _, c := range columns {
			width := utf8.RuneCountInString(c.name)
			for _, r := range rows {
				width = max(width, utf8.RuneCountInString(c.cell(r)))
			}
			if c.left {
				width = -width
			}
			cells = append(cells, fmt.Sprintf("%*s", width, cell(c)))
		}
		fmt.Fprintln(b, strings.TrimRight(strings.Join(cells, "  "), " "))
	}
	line(func(c traceColumn) string { return c.name })
	for i, r := range rows {
		if i > 0 && r.bound() != rows[i-1].bound() {
			b.WriteString("\n")
		}
		line(func(c traceColumn) string { return c.cell(r) })
	}
}

const traceKeyText = `How to read it
  policy     opt: the most hits that any cache of the size could have, knowing what comes; of sizes in bytes, a bound of them.
             Its reads %, bytes % and cost % are those of the same run: others may have more
  hit %      share of all requests that found their key; a write is a request, and so is a deletion, which finds nothing
  reads %    the same of reads alone; bytes %, cost %: each read and write weighted with its object's size, or what a miss costs
  by tier %  share of all requests that each tier answered
`
