package main

import (
	"fmt"
	"math"
	"sort"
	"time"
)

// ownTiming finds when the requests of a trace are due by the trace's own times.
//
// Many formats have whole seconds, and so all requests of a second under one time, which
// did not come at once. Where all times are whole they are spread evenly over their second.
type ownTiming struct {
	speed   float64 // seconds of the trace in one of the replay
	seconds float64 // of the replay, its warm-up included

	first, last float64
	at          []float64 // seconds of the trace since its first request; never less than the one before
	back        int       // requests that came with a time before that of another
	ahead       int       // requests that came with a time behind the end, among others
	behind      float64   // the time of the first of those that are behind the end for good
	fractions   bool
	over        bool // there is no time left for further requests
}

// length is what is replayed, in seconds of the trace.
func (o *ownTiming) length() float64 { return o.seconds * o.speed }

// fits reports whether a request is due before the end.
func (o *ownTiming) fits(at float64) bool { return len(o.at) == 0 || at-o.first < o.length() }

// add adds the time of the next request, which fits.
func (o *ownTiming) add(at float64) error {
	if len(o.at) == maxReads {
		return fmt.Errorf("more than %d requests come in %v s at this speed: lower --speed or --seconds", maxReads, o.seconds)
	}
	if len(o.at) == 0 {
		o.first, o.last = at, at
	}
	if at < o.last {
		o.back++
		at = o.last
	}
	o.last = at
	o.fractions = o.fractions || at != math.Trunc(at)
	o.at = append(o.at, at-o.first)
	return nil
}

// end says that all further requests are behind the end, the first of them at the given time.
func (o *ownTiming) end(behind float64) { o.over, o.behind = true, behind }

// due returns when the requests are due, from the first, as many as there is time for.
func (o *ownTiming) due() []time.Duration {
	if !o.fractions {
		spread(o.at)
	}
	n := sort.SearchFloat64s(o.at, o.length())
	due := make([]time.Duration, n)
	for i, at := range o.at[:n] {
		due[i] = seconds(at / o.speed)
	}
	return due
}

// spread moves times that are equal to even distances within their second.
func spread(at []float64) {
	for from := 0; from < len(at); {
		to := from + 1
		for to < len(at) && at[to] == at[from] {
			to++
		}
		for i := from; i < to; i++ {
			at[i] += float64(i-from) / float64(to-from)
		}
		from = to
	}
}

// timed gives the workload the times, of which there must be some behind the warm-up.
func (w *workload) timed(o *ownTiming, warmup float64) error {
	due := o.due()
	w.due, w.warmup = due, seconds(warmup)
	w.warm = sort.Search(len(due), func(i int) bool { return due[i] >= w.warmup })
	if w.warm == len(due) {
		next := ""
		if o.over {
			next = fmt.Sprintf(" (the next is %.4gs after it)", o.behind-o.first)
		}
		return fmt.Errorf("none of its requests comes in the open loop, from %vs to %vs after the first at --speed %v%s: change --speed, --seconds or --warmup-seconds",
			warmup, o.seconds, o.speed, next)
	}
	switch gap := o.behind - o.last; {
	case !o.over:
		w.notes = append(w.notes, fmt.Sprintf("the trace ends %.3gs after its first request at this speed, before the %vs of warm-up and open loop are over",
			due[len(due)-1].Seconds(), o.seconds))
	case gap > o.length():
		w.notes = append(w.notes, fmt.Sprintf("%.3gs after its first request at this speed the trace has a gap of %.4gs of its own, longer than all that is replayed",
			due[len(due)-1].Seconds(), gap))
	}
	if o.ahead > 0 {
		w.notes = append(w.notes, fmt.Sprintf("%d requests have a time behind the end, and others that are due before it follow: they are left out", o.ahead))
	}
	if o.back > 0 {
		w.notes = append(w.notes, fmt.Sprintf("%d requests have a time before that of an earlier one, and come when that did", o.back))
	}
	return nil
}

// meanRate is that of the open loop, in starts a second.
func (w *workload) meanRate(seconds float64) float64 {
	rate := float64(len(w.due)-w.warm) / seconds
	unit := math.Pow(10, math.Floor(math.Log10(rate))-2) // three digits say enough
	return math.Round(rate/unit) * unit
}
