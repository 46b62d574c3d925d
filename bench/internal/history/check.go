package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Rule is one of the things promised.
type Rule string

// The rules.
const (
	// Own: no process reads what was there before a write of its own that has returned.
	Own Rule = "own write"
	// Kept: none reads for longer than Keep what others have overwritten.
	Kept Rule = "kept too long"
	// Told: none reads what others have overwritten once the bus has worked for Converge
	// since, at both.
	Told Rule = "bus works"
	// Gapped: none reads what was overwritten before it noticed a gap.
	Gapped Rule = "gap noticed"
	// Clamped: none reads what others have overwritten once it has known for Clamp that
	// the bus is lost, with the shared tier in reach.
	Clamped Rule = "bus lost"
	// Made: none reads what nobody has written yet.
	Made Rule = "never written"
)

// Violation is a read that a rule forbids.
type Violation struct {
	Rule  Rule
	Read  Op
	Write Op            // that the read should have seen; zero for Made
	Late  time.Duration // how long the read began after what ends the time allowed
}

// String tells the violation in one line. Times are in milliseconds since the write ended,
// where there is one.
func (v Violation) String() string {
	if v.Rule == Made {
		return fmt.Sprintf("%s: process %d read version %d of key %d", v.Rule, v.Read.Process+1, v.Read.Version, v.Read.Key)
	}
	at := func(t int64) string { return fmt.Sprintf("%+.1fms", float64(t-v.Write.End)/1e6) }
	missed := ""
	if v.Write.Missed {
		missed = ", which the shared tier had missed at first"
	}
	return fmt.Sprintf("%s: process %d read version %d of key %d from %s to %s, after a %s of version %d by process %d from %s to +0.0ms%s; %v too late",
		v.Rule, v.Read.Process+1, v.Read.Version, v.Read.Key, at(v.Read.Begin), at(v.Read.End),
		v.Write.Kind, v.Write.Version, v.Write.Process+1, at(v.Write.Begin), missed, v.Late.Round(100*time.Microsecond))
}

// Report is what a check has found.
type Report struct {
	Violations    []Violation
	Reads, Writes int // that did something
	Failed        int // reads and writes that did nothing
	Excused       int // Expires that others' loads under way may have undone
	// Stale are, for each read of what another process had overwritten before it began,
	// how long it was late: since the shared tier has had the write, and with the bus only
	// as long as that has worked at both since. Sorted.
	Stale []time.Duration
}

// write is an operation with what follows from the history.
type write struct {
	Op
	arrived int64 // when the shared tier had it; never where that is not known
	excused bool  // it need not be seen
}

const never = math.MaxInt64

// Check returns what the history shows.
func (h *History) Check(p Promise) (r Report) {
	c := &check{History: h, Promise: p, stalls: make([][]Span, len(h.Processes))}
	for i := range h.Processes {
		q := &h.Processes[i]
		c.stalls[i] = merged(q.Stalls, h.Stalls)
		c.busDown = append(c.busDown, merged(q.BusDown))
		c.tierDown = append(c.tierDown, merged(q.TierDown))
		c.lost = append(c.lost, lostSpans(q.Samples))
	}
	writes := make(map[int][]write) // by key
	for _, op := range h.Ops {
		switch {
		case op.Kind == Load:
		case op.Failed:
			r.Failed++
		case op.writes():
			r.Writes++
		default:
			r.Reads++
		}
		if op.writes() {
			w := write{Op: op, arrived: c.arrival(&op), excused: op.Failed}
			if !w.excused && op.Kind == Expire && c.undone(&op) {
				w.excused = true
				r.Excused++
			}
			writes[op.Key] = append(writes[op.Key], w)
		}
	}
	for _, of := range writes {
		slices.SortFunc(of, func(a, b write) int { return cmp.Compare(a.Version, b.Version) })
	}
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Kind == Get && !op.Failed {
			c.read(op, writes[op.Key], &r)
		}
	}
	slices.Sort(r.Stale)
	slices.SortFunc(r.Violations, func(a, b Violation) int { return cmp.Compare(a.Read.Begin, b.Read.Begin) })
	return r
}

// check is a History being checked. What it holds by process is merged.
type check struct {
	*History
	Promise
	stalls, busDown, tierDown, lost [][]Span
}

// arrival returns when the shared tier has had a write.
func (c *check) arrival(op *Op) int64 {
	if !op.Missed {
		return op.End
	}
	samples := c.Processes[op.Process].Samples
	for _, s := range samples[from(samples, op.End):] {
		if s.Pending == 0 {
			return s.End
		}
	}
	return never
}

// from returns the index of the first sample that began at the time or later.
func from(samples []Sample, at int64) int {
	i, _ := slices.BinarySearchFunc(samples, at, func(s Sample, at int64) int { return cmp.Compare(s.Begin, at) })
	return i
}

// undone reports whether an Expire, which fences the loads of its own process only, may
// have been followed by another process's storing of what it had loaded or set before.
func (c *check) undone(op *Op) bool {
	arrived := c.arrival(op)
	for i := range c.Processes {
		samples := c.Processes[i].Samples
		if i == op.Process || len(samples) == 0 {
			continue
		}
		for _, s := range samples[max(0, from(samples, op.Begin)-1):] {
			if s.Pending > 0 {
				return true
			}
			if s.Begin > arrived {
				break
			}
		}
	}
	return slices.ContainsFunc(c.Ops, func(l Op) bool {
		return l.Kind == Load && l.Key == op.Key && l.Process != op.Process && l.Version < op.Version &&
			length(Span{l.End, max(l.End, op.Begin)}, c.stalls[l.Process]) <= int64(c.Storing)
	})
}

// read checks one read against the writes of its key, in the order of their versions.
func (c *check) read(op *Op, writes []write, r *Report) {
	newest := 0
	stale := time.Duration(-1)
	first := make(map[Rule]bool) // one violation of a rule is enough for a read
	violated := func(rule Rule, w *write, late int64) {
		if !first[rule] {
			first[rule] = true
			r.Violations = append(r.Violations, Violation{rule, *op, w.Op, time.Duration(late)})
		}
	}
	for i := range writes {
		w := &writes[i]
		if w.Begin <= op.End {
			newest = max(newest, w.Version)
		}
		if w.Version <= op.Version || w.excused || w.End >= op.Begin {
			continue
		}
		if w.Process == op.Process {
			violated(Own, w, op.Begin-w.End)
			continue
		}
		if w.arrived >= op.Begin {
			continue
		}
		late, rule, over := c.late(op, w)
		stale = max(stale, time.Duration(late))
		if rule != "" {
			violated(rule, w, over)
		}
	}
	if stale >= 0 {
		r.Stale = append(r.Stale, stale)
	}
	if op.Version > newest {
		violated(Made, &write{}, 0)
	}
}

// late returns how late a read is that has not seen another process's write, and which rule
// forbids that, if one does, by how much.
func (c *check) late(op *Op, w *write) (late int64, rule Rule, over int64) {
	q := op.Process
	since := Span{w.arrived, op.Begin}
	stalls := merged(c.stalls[q], c.stalls[w.Process])
	late = length(since, c.stalls[q])
	if c.Bus {
		late = longest(without(merged(c.busDown[q], c.busDown[w.Process]), since), stalls)
		if late > int64(c.Converge) {
			return late, Told, late - int64(c.Converge)
		}
		if at, before, ok := c.gap(q, op.Begin); ok && w.arrived < before {
			return late, Gapped, op.Begin - at
		}
		var known int64
		for _, s := range within(c.lost[q], since) {
			known = max(known, longest(without(c.tierDown[q], s), stalls))
		}
		if known > int64(c.Clamp) {
			return late, Clamped, known - int64(c.Clamp)
		}
	}
	if c.Keep > 0 {
		told := Span{max(w.arrived, c.untold(q, op.Begin)), op.Begin}
		if d := length(told, c.stalls[q]); d > int64(c.Keep) {
			return late, Kept, d - int64(c.Keep)
		}
	}
	return late, "", 0
}

// gap returns the last gap that a process has noticed and must have acted on before the
// time: when it was seen to be counted, and a time before which it was not.
func (c *check) gap(process int, before int64) (seen, not int64, ok bool) {
	samples := c.Processes[process].Samples
	for i := from(samples, before) - 1; i > 0; i-- {
		s, last := &samples[i], &samples[i-1]
		if s.Gaps > last.Gaps && length(Span{s.End, max(s.End, before)}, c.stalls[process]) > int64(c.Notice) {
			return s.End, last.Begin, true
		}
	}
	return 0, 0, false
}

// untold returns the last time before the given one at which a process may have had
// something that the shared tier has missed; 0 for none.
func (c *check) untold(process int, before int64) int64 {
	samples := c.Processes[process].Samples
	for i := from(samples, before) - 1; i >= 0; i-- {
		if samples[i].Pending == 0 {
			continue
		}
		if i+1 < len(samples) {
			return min(before, samples[i+1].End)
		}
		return before
	}
	return 0
}

// lostSpans returns when a process has known that its bus was lost, at the least.
func lostSpans(samples []Sample) (spans []Span) {
	for i, s := range samples {
		if i > 0 && s.Lost && samples[i-1].Lost {
			spans = append(spans, Span{samples[i-1].Begin, s.End})
		}
	}
	return merged(spans)
}
