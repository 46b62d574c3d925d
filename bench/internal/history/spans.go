package history

import (
	"cmp"
	"slices"
)

// merged returns the spans as ones that do not touch, in order.
func merged(all ...[]Span) []Span {
	spans := slices.Concat(all...)
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Begin, b.Begin) })
	var out []Span
	for _, s := range spans {
		if n := len(out); n > 0 && s.Begin <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, s.End)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// within returns the parts of merged spans that lie in a span.
func within(spans []Span, in Span) []Span {
	first, _ := slices.BinarySearchFunc(spans, in.Begin, func(s Span, at int64) int { return cmp.Compare(s.End, at) })
	var out []Span
	for _, s := range spans[first:] {
		if s.Begin >= in.End {
			break
		}
		out = append(out, Span{max(s.Begin, in.Begin), min(s.End, in.End)})
	}
	return out
}

// without returns what of a span is left beside merged spans.
func without(spans []Span, in Span) []Span {
	var out []Span
	at := in.Begin
	for _, s := range within(spans, in) {
		if s.Begin > at {
			out = append(out, Span{at, s.Begin})
		}
		at = s.End
	}
	if in.End > at {
		out = append(out, Span{at, in.End})
	}
	return out
}

// length returns how long a span is without merged stalls.
func length(in Span, stalls []Span) int64 {
	d := in.End - in.Begin
	for _, s := range within(stalls, in) {
		d -= s.End - s.Begin
	}
	return max(d, 0)
}

// longest returns how long the longest of the spans is without merged stalls.
func longest(spans, stalls []Span) (d int64) {
	for _, s := range spans {
		d = max(d, length(s, stalls))
	}
	return d
}
