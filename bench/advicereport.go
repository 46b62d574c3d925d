package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/terracecache/terrace/bench/internal/curve"
)

// advice is all that was found.
type advice struct {
	Environment  adviceEnvironment `json:"environment"`
	Trace        traceOfRows       `json:"trace"`
	Remote       *remoteTier       `json:"remote"` // nil: there is none
	Sample       adviceSample      `json:"sample"`
	Rows         []*curveRow       `json:"rows"`
	Alternatives []*alternative    `json:"alternatives"`
	Advice       *recommendation   `json:"advice"` // nil: interrupted
}

// adviceEnvironment is what the advice depends on beside the trace.
type adviceEnvironment struct {
	Go            string  `json:"go"`
	System        string  `json:"system"`
	CPUs          int     `json:"cpus"`
	Began         string  `json:"began"` // RFC 3339
	Seed          uint64  `json:"seed"`
	Complete      bool    `json:"complete"`
	Goal          string  `json:"goal"`
	Memory        int64   `json:"memory"`         // bytes
	EntryBytes    int64   `json:"entry_bytes"`    // with what stores need
	Budget        int64   `json:"budget"`         // entries
	RemoteEntries int64   `json:"remote_entries"` // of the remote tier
	OriginLatency float64 `json:"origin_latency"` // seconds
	Rate          float64 `json:"rate"`           // requests a second
	OriginPrice   float64 `json:"origin_price"`   // of a million loads
	RemotePrice   float64 `json:"remote_price"`   // an hour
	MemoryPrice   float64 `json:"memory_price"`   // of a GiB an hour
	TTL           float64 `json:"ttl"`            // seconds
	MaxStale      float64 `json:"max_stale"`      // seconds
}

// adviceSample is the part of the trace that was replayed, and how good it is. Errors are
// shares of 1.
type adviceSample struct {
	Sampled   bool     `json:"sampled"`
	Share     float64  `json:"share"` // of the keys
	Keys      int64    `json:"keys"`
	Requests  int64    `json:"requests"`
	Spread    float64  `json:"estimated_error"` // standard error, by quarters of the part
	Replayed  int64    `json:"replayed"`        // requests, of all rows, and of what was replayed again
	Full      int64    `json:"full"`            // requests that full replays would take
	Over      string   `json:"over"`            // why that is more than a tenth; empty: it is not, or the trace is short
	MeanError *float64 `json:"mean_error"`      // against full replays; nil: none were made
	MaxError  *float64 `json:"max_error"`

	greater bool // than the first part that was taken
}

// tell says why more than a tenth of the work was done.
func (s *adviceSample) tell(of *adviseSettings, requests int64) {
	switch {
	case requests <= curve.Few || float64(s.Replayed) <= curve.Tenth*float64(s.Full):
	case of.Sample > 0:
		s.Over = "--sample says how many keys"
	case s.greater:
		s.Over = fmt.Sprintf("with fewer keys the error would be about more than %.0f point", 100*mostSpread)
	default:
		s.Over = fmt.Sprintf("with less the smallest store would have fewer than %d entries, or the part fewer than %d keys", curve.LeastEntries, curve.LeastKeys)
	}
}

// compare takes over how far rows are off full replays.
func (s *adviceSample) compare(rows []*curveRow) {
	sum, most, n := 0.0, 0.0, 0.0
	for _, r := range rows {
		if r.FullHitRatio != nil {
			off := math.Abs(r.HitRatio - *r.FullHitRatio)
			sum, most, n = sum+off, max(most, off), n+1
		}
	}
	if n > 0 {
		mean := sum / n
		s.MeanError, s.MaxError = &mean, &most
	}
}

// curveRow is a point of a curve.
type curveRow struct {
	Policy       string   `json:"policy"`
	Size         int64    `json:"size"` // entries
	HitRatio     float64  `json:"hit_ratio"`
	Sampled      bool     `json:"sampled"`
	FullHitRatio *float64 `json:"full_hit_ratio"` // nil: no full replay was made
	done         bool
}

func newAdvice(s *adviseSettings, remote *remoteTier) *advice {
	return &advice{
		Environment: adviceEnvironment{
			Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0),
			Began: time.Now().Format(time.RFC3339), Seed: s.Seed,
			Goal: s.Goal, Memory: s.memory, Rate: s.Rate,
			OriginLatency: s.OriginLatency.Seconds(), OriginPrice: s.OriginPrice, RemotePrice: s.RemotePrice, MemoryPrice: s.MemoryPrice,
			TTL: s.TTL.Seconds(), MaxStale: s.MaxStale.Seconds(),
		},
		Trace:  traceOfRows{Trace: s.label(), FirstMalformed: []string{}, Notes: []string{}},
		Remote: remote,
		Rows:   []*curveRow{}, Alternatives: []*alternative{},
	}
}

// writeTable writes the advice for people.
func (a *advice) writeTable(w io.Writer, s *adviseSettings) error {
	var b strings.Builder
	a.writeHead(&b, s)
	a.writeCurve(&b, s)
	a.writeAlternatives(&b, s)
	if a.Advice == nil {
		b.WriteString("! not all of it was done: there is no advice\n")
	} else {
		a.Advice.write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *advice) writeHead(b *strings.Builder, s *adviseSettings) {
	e, t := &a.Environment, &a.Trace
	fmt.Fprintf(b, "%s, %s, %d CPUs; seed %d\n", e.Go, e.System, e.CPUs, e.Seed)
	fmt.Fprintf(b, "%s  %s: %d requests of %d keys\n", filepath.Base(t.Trace), t.Format, t.Requests, t.Keys)
	if t.Malformed > 0 {
		fmt.Fprintf(b, "! %d malformed, which are left out; the first: %s\n", t.Malformed, oneLine(t.FirstMalformed[0]))
	}
	if t.Error != "" {
		fmt.Fprintf(b, "! %s\n", t.Error)
	}
	for _, note := range t.Notes {
		fmt.Fprintf(b, "! %s\n", note)
	}
	fmt.Fprintf(b, "goal      %s, within %s: %d entries of %d bytes\n", e.Goal, s.Memory, e.Budget, e.EntryBytes)
	fmt.Fprintf(b, "origin    a load takes %v; %v requests/s\n", s.OriginLatency, s.Rate)
	if a.Remote != nil {
		fmt.Fprintf(b, "remote    %s\n", a.remoteText())
	}
	a.Sample.write(b)
	b.WriteString("\n")
}

// remoteText says what the remote tier takes. There is one.
func (a *advice) remoteText() string {
	r, how := a.Remote, "given"
	if r.Measured {
		how = fmt.Sprintf("measured, %d Gets of %s", r.Gets, r.Label)
	}
	return fmt.Sprintf("a Get takes %s, p99 %s (%s); %d entries", short(r.P50), short(r.P99), how, a.Environment.RemoteEntries)
}

func (s *adviceSample) write(b *strings.Builder) {
	if !s.Sampled {
		fmt.Fprintf(b, "replayed  all of it: nothing is estimated; %d requests\n", s.Replayed)
	} else {
		fmt.Fprintf(b, "replayed  %.1f %% of the keys, %d requests in all rows together: %.1f %% of the %d of full replays\n",
			100*s.Share, s.Replayed, 100*ratio64(s.Replayed, s.Full), s.Full)
		fmt.Fprintf(b, "error     about %.2f points of hit ratio, by how much four parts of these keys differ\n", 100*s.Spread)
	}
	if s.Over != "" {
		fmt.Fprintf(b, "! that is more than a tenth of the work: %s\n", s.Over)
	}
	if s.MeanError != nil {
		fmt.Fprintf(b, "          %.2f points in the mean and %.2f at most, by full replays of the curve\n", 100**s.MeanError, 100**s.MaxError)
	}
}

// writeCurve writes the hit ratios, a line a size.
func (a *advice) writeCurve(b *strings.Builder, s *adviseSettings) {
	fmt.Fprintf(b, "%10s  %10s", "size", "memory")
	policies := append([]string{optimum}, s.Policies...)
	for _, p := range policies {
		fmt.Fprintf(b, "  %9s", p)
	}
	b.WriteString("\n")
	cells := make(map[curveRow]float64)
	var sizes []int64
	for _, r := range a.Rows {
		cells[curveRow{Policy: r.Policy, Size: r.Size}] = r.HitRatio
		if !slices.Contains(sizes, r.Size) {
			sizes = append(sizes, r.Size)
		}
	}
	for _, size := range sizes {
		fmt.Fprintf(b, "%10d  %10s", size, about(size*a.Environment.EntryBytes))
		for _, p := range policies {
			cell := "-"
			if v, known := cells[curveRow{Policy: p, Size: size}]; known {
				cell = hundredth(&v)
			}
			fmt.Fprintf(b, "  %9s", cell)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// about writes bytes with three digits.
func about(n int64) string {
	v, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1024, next
	}
	return fmt.Sprintf("%.3g%s", v, unit)
}

// mostAlternatives is how many are shown to people.
const mostAlternatives = 12

// ranked returns the alternatives, the best under the goal first.
func (a *advice) ranked() []*alternative {
	merit := func(c *alternative) float64 {
		switch a.Environment.Goal {
		case goalOrigin:
			return 1 - c.HitRatio
		case goalCost:
			return c.Cost
		default:
			return c.P99
		}
	}
	all := slices.Clone(a.Alternatives)
	slices.SortStableFunc(all, func(x, y *alternative) int {
		return cmp.Or(cmp.Compare(merit(x), merit(y)), cmp.Compare(x.Mean, y.Mean), cmp.Compare(x.Memory, y.Memory))
	})
	return all
}

// bestOfEach returns the first of each combination of evictions, as many as are shown to
// people.
func bestOfEach(ranked []*alternative) []*alternative {
	seen := make(map[string]bool)
	best := slices.DeleteFunc(slices.Clone(ranked), func(c *alternative) bool {
		again := seen[c.name()]
		seen[c.name()] = true
		return again
	})
	return best[:min(len(best), mostAlternatives)]
}

// priced reports whether there is anything to pay for.
func (s *adviseSettings) priced() bool { return s.OriginPrice+s.RemotePrice+s.MemoryPrice > 0 }

// writeAlternatives writes the best of each combination of evictions.
func (a *advice) writeAlternatives(b *strings.Builder, s *adviseSettings) {
	all := bestOfEach(a.ranked())
	width := len("alternative")
	for _, c := range all {
		width = max(width, len(c.argument()))
	}
	fmt.Fprintf(b, "%-*s  %7s  %9s  %9s  %10s", width, "alternative", "hits %", "p99", "mean", "loads/s")
	if s.priced() {
		fmt.Fprintf(b, "  %9s", "cost/h")
	}
	b.WriteString("\n")
	for _, c := range all {
		fmt.Fprintf(b, "%-*s  %7s  %9s  %9s  %10.1f", width, c.argument(), hundredth(&c.HitRatio), short(c.P99), short(c.Mean), c.OriginLoads)
		if s.priced() {
			fmt.Fprintf(b, "  %9.4g", c.Cost)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

func (r *recommendation) write(b *strings.Builder) {
	fmt.Fprintf(b, "advice    %s: %s %% hits, p99 %s, mean %s, %.1f loads/s\n", r.argument(), hundredth(&r.HitRatio), short(r.P99), short(r.Mean), r.OriginLoads)
	if r.varies() {
		fmt.Fprintf(b, "          %s\n", r.spread())
	}
	if r.FullHitRatio != nil {
		fmt.Fprintf(b, "          a full replay has %s %% hits: %+.2f points\n", hundredth(r.FullHitRatio), 100*(*r.FullHitRatio-r.HitRatio))
	}
	fmt.Fprintf(b, "because   %s\n", r.Why)
	fmt.Fprintf(b, "refresh   %s: %s\n", r.Refresh.Policy, r.Refresh.Reason)
	if r.Replay != "" {
		fmt.Fprintf(b, "to see it %s\n", r.Replay)
	}
	fmt.Fprintf(b, "\n%s", r.Config)
}
