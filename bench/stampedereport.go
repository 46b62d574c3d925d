package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/terracecache/terrace/bench/internal/lab"
)

// stampedeReport is all that a comparison of strategies found.
type stampedeReport struct {
	Environment stampedeEnvironment `json:"environment"`
	Rows        []stampedeRow       `json:"rows"`
	Cases       []caseRow           `json:"cases"`
	Spread      []spreadRow         `json:"spread"`
}

// stampedeEnvironment is what the rows depend on. Times are in seconds.
type stampedeEnvironment struct {
	labEnvironment
	Arrivals  string  `json:"arrivals"`
	Rate      float64 `json:"rate_per_second"`
	Seconds   float64 `json:"seconds"`
	Lasted    float64 `json:"lasted_seconds"` // less than Seconds where interrupted
	Late      float64 `json:"late_seconds"`   // the most by which a request came late
	TTL       float64 `json:"ttl_seconds"`
	Stale     float64 `json:"swr_stale_seconds"`
	Latency   float64 `json:"latency_seconds"`
	Capacity  int     `json:"capacity"`
	Slow      float64 `json:"slow_seconds"`
	Processes int     `json:"processes"`
	Pause     float64 `json:"pause_seconds"`
}

// stampedeRow is what one strategy did.
type stampedeRow struct {
	Strategy    string      `json:"strategy"`
	Does        string      `json:"does"`
	Requests    int         `json:"requests"`
	OriginCalls int         `json:"origin_calls"`
	OriginPeak  int         `json:"origin_peak"`
	Refused     int         `json:"refused"` // origin calls above its capacity
	Slow        int         `json:"slow"`
	Oldest      float64     `json:"oldest_seconds"`
	Failed      int         `json:"failed"`
	Latency     percentiles `json:"latency_seconds"`
	Calls       []float64   `json:"origin_call_seconds"` // when each call began
}

// caseRow is what came of a published experiment.
type caseRow struct {
	Case            string      `json:"case"`
	Does            string      `json:"does"`
	Requests        int         `json:"requests"`
	OriginCalls     int         `json:"origin_calls"`
	OriginPeak      int         `json:"origin_peak"`
	Failed          int         `json:"failed"`
	Wall            float64     `json:"wall_seconds"`
	Latency         percentiles `json:"latency_seconds"`
	Published       *int        `json:"published_origin_calls,omitempty"`
	PublishedFailed int         `json:"published_failed"`
}

// spreadRow is the TTLs that keys got which were written together.
type spreadRow struct {
	Jitter float64 `json:"jitter"`
	Keys   int     `json:"keys"`
	TTL    float64 `json:"ttl_seconds"`
	Least  float64 `json:"least_seconds"`
	Most   float64 `json:"most_seconds"`
	Tenths [10]int `json:"tenths"` // keys in each tenth of TTL ± 10 %
}

func newStampedeReport(s *stampedeSettings) *stampedeReport {
	return &stampedeReport{
		Environment: stampedeEnvironment{
			labEnvironment: newLabEnvironment(&s.labSettings),
			Arrivals:       s.Arrivals, Rate: s.Rate, Seconds: s.Seconds,
			TTL: s.TTL.Seconds(), Stale: s.Stale.Seconds(), Latency: s.Latency.Seconds(), Capacity: s.Capacity,
			Slow: s.Slow.Seconds(), Processes: s.Processes, Pause: s.Pause.Seconds(),
		},
		Rows: []stampedeRow{}, Cases: []caseRow{}, Spread: []spreadRow{},
	}
}

func percentilesOf(r lab.Reads) percentiles {
	return percentiles{P50: r.P50.Seconds(), P90: r.P90.Seconds(), P99: r.P99.Seconds(), P999: r.P999.Seconds(), Max: r.Max.Seconds()}
}

func newCaseRow(o lab.CaseOutcome) caseRow {
	row := caseRow{
		Case: o.Case.Name, Does: o.Case.Does,
		Requests: o.Reads.Requests, OriginCalls: o.Origin.Calls, OriginPeak: o.Origin.Peak, Failed: o.Reads.Failed,
		Wall: o.Wall.Seconds(), Latency: percentilesOf(o.Reads),
		PublishedFailed: max(o.Case.PublishedFailed, 0),
	}
	if n := o.Case.Published; n >= 0 {
		row.Published = &n
	}
	return row
}

// lateAbove is how late a request may come before the report says so.
const lateAbove = 5 * time.Millisecond

// add adds what a comparison found.
func (r *stampedeReport) add(result lab.Result) {
	e := &r.Environment
	e.Lasted, e.Late = result.Lasted.Seconds(), result.Late.Seconds()
	if result.Late > lateAbove {
		e.Notes = append(e.Notes, fmt.Sprintf("the machine was busy: requests came up to %v late, and calls of naive and processes-N come in bursts of another size than on an idle one",
			result.Late.Round(time.Millisecond)))
	}
	if len(result.Outcomes) > 0 && e.Lasted < e.Seconds-0.001 {
		e.Notes = append(e.Notes, fmt.Sprintf("interrupted after %.1fs of %vs", e.Lasted, e.Seconds))
	}
	for _, o := range result.Outcomes {
		row := stampedeRow{
			Strategy: o.Strategy.Name, Does: o.Strategy.Does,
			Requests: o.Reads.Requests, OriginCalls: o.Origin.Calls, OriginPeak: o.Origin.Peak, Refused: o.Origin.Refused,
			Slow: o.Reads.Slow, Oldest: o.Reads.Oldest.Seconds(), Failed: o.Reads.Failed,
			Latency: percentilesOf(o.Reads), Calls: []float64{},
		}
		for _, at := range o.Calls {
			row.Calls = append(row.Calls, at.Seconds())
		}
		r.Rows = append(r.Rows, row)
	}
}

// writeTable writes the report for people.
func (r *stampedeReport) writeTable(w io.Writer) error {
	var b bytes.Buffer
	e := &r.Environment
	fmt.Fprintf(&b, "%s, %s, %d CPUs; seed %d\n", e.Go, e.System, e.CPUs, e.Seed)
	if len(r.Rows) > 0 {
		r.writeStrategies(&b)
	}
	r.writeCases(&b)
	for _, note := range e.Notes {
		fmt.Fprintf(&b, "! %s\n", note)
	}
	if len(e.Notes) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(stampedeKeyText)
	_, err := w.Write(b.Bytes())
	return err
}

// stampedeColumns are those of the strategies' table.
var stampedeColumns = []columnOf[stampedeRow]{
	{"strategy", -14, func(r *stampedeRow) string { return r.Strategy }},
	{"origin calls", 12, func(r *stampedeRow) string { return fmt.Sprint(r.OriginCalls) }},
	{"peak", 6, func(r *stampedeRow) string { return fmt.Sprint(r.OriginPeak) }},
	{"slow", 6, func(r *stampedeRow) string { return fmt.Sprint(r.Slow) }},
	{"oldest", 8, func(r *stampedeRow) string { return fmt.Sprintf("%.2fs", r.Oldest) }},
	{"failed", 7, func(r *stampedeRow) string { return fmt.Sprint(r.Failed) }},
	{"p50", 8, func(r *stampedeRow) string { return short(r.Latency.P50) }},
	{"p99", 8, func(r *stampedeRow) string { return short(r.Latency.P99) }},
}

func (r *stampedeReport) writeStrategies(w io.Writer) {
	e := &r.Environment
	fmt.Fprintf(w, "requests  %v/s for %vs on one key, %s; ttl %v, swr serves stale for %v more\n",
		e.Rate, e.Seconds, e.Arrivals, seconds(e.TTL), seconds(e.Stale))
	fmt.Fprintf(w, "origin    a query takes %v; %d at once\n\n", seconds(e.Latency), e.Capacity)
	writeColumns(w, stampedeColumns, r.Rows)
	fmt.Fprintln(w)
}

// caseColumns are those of the published experiments' table.
var caseColumns = []columnOf[caseRow]{
	{"case", -19, func(r *caseRow) string { return r.Case }},
	{"origin calls", 12, func(r *caseRow) string { return fmt.Sprint(r.OriginCalls) }},
	{"published", 9, func(r *caseRow) string {
		if r.Published == nil {
			return "-"
		}
		return fmt.Sprint(*r.Published)
	}},
	{"peak", 5, func(r *caseRow) string { return fmt.Sprint(r.OriginPeak) }},
	{"failed", 7, func(r *caseRow) string { return fmt.Sprint(r.Failed) }},
	{"p50", 8, func(r *caseRow) string { return short(r.Latency.P50) }},
	{"wall", 7, func(r *caseRow) string { return fmt.Sprintf("%.2fs", r.Wall) }},
	{"", 1, func(r *caseRow) string { return " " + r.Does }},
}

func (r *stampedeReport) writeCases(w io.Writer) {
	fmt.Fprintf(w, "Published experiments: the origin takes 200ms; a reader reads every %v or so\n\n", seconds(r.Environment.Pause))
	writeColumns(w, caseColumns, r.Cases)
	fmt.Fprintln(w)
	for _, s := range r.Spread {
		fmt.Fprintf(w, "%d keys written at once with jitter %v: TTLs %.2fs to %.2fs; by tenths of %.0fs ± 10 %%: %s\n",
			s.Keys, s.Jitter, s.Least, s.Most, s.TTL, strings.Trim(fmt.Sprint(s.Tenths), "[]"))
	}
	fmt.Fprintln(w)
}

const stampedeKeyText = `How to read it
  origin calls  queries of the origin, those that it refused included; peak: the most that ran at once
  slow          reads that took longer than half of what a query takes (or --slow), from when they came
  oldest        age of the oldest value served, from when its query began
  failed        reads answered with an error
  published     origin calls as published for the same experiment elsewhere; docs/bench.md says why some differ
`
