package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terracecache/terrace/bench/internal/replay"
)

// traceSize is how much a store may hold.
type traceSize struct {
	n       int64   // entries, or bytes
	percent float64 // of the keys, in place of n; zero: n
	bytes   bool
}

var sizeForm = regexp.MustCompile(`^([0-9][0-9_]*(?:\.[0-9]+)?)\s*(%|[A-Za-z]*)$`)

var byteUnits = map[string]float64{
	"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
}

const (
	// maxTraceEntries is more than memory has room for.
	maxTraceEntries = 1 << 30
	maxTraceBytes   = 1 << 50
)

func parseTraceSize(text string) (traceSize, error) {
	const want = "want entries such as 500, a share of the keys such as 10%, or bytes such as 10MB or 1GiB"
	m := sizeForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return traceSize{}, fmt.Errorf("%q: %s", text, want)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(m[1], "_", ""), 64)
	if err != nil {
		return traceSize{}, fmt.Errorf("%q: %s", text, want)
	}
	unit, known := byteUnits[strings.ToUpper(m[2])]
	switch {
	case m[2] == "%":
		if !(v > 0 && v <= 100) {
			return traceSize{}, fmt.Errorf("%s: want more than 0%%, up to 100%%", text)
		}
		return traceSize{percent: v}, nil
	case m[2] == "":
		if v != math.Trunc(v) || v < 1 || v > maxTraceEntries {
			return traceSize{}, fmt.Errorf("%s: want a whole number of entries from 1 to %d", text, maxTraceEntries)
		}
		return traceSize{n: int64(v)}, nil
	case !known:
		return traceSize{}, fmt.Errorf("%q: there is no unit %q: %s", text, m[2], want)
	case v*unit < 1 || v*unit > maxTraceBytes:
		return traceSize{}, fmt.Errorf("%s: want 1 byte to 1024 TiB", text)
	}
	return traceSize{n: int64(v * unit), bytes: true}, nil
}

// of returns the size for a trace of so many keys.
func (s traceSize) of(keys int64) int64 {
	if s.percent == 0 {
		return s.n
	}
	return max(1, int64(math.Round(float64(keys)*s.percent/100)))
}

// traceCombination is tiers to replay, from the top.
type traceCombination []traceTier

type traceTier struct {
	name, policy string
	size         traceSize
}

// mostTraceTiers is more than make sense.
const mostTraceTiers = 8

func parseTraceCombination(text string) (traceCombination, error) {
	var c traceCombination
	for part := range strings.SplitSeq(text, ",") {
		fields := strings.Split(strings.TrimSpace(part), ":")
		if len(fields) < 2 || len(fields) > 3 || fields[0] == "" {
			return nil, fmt.Errorf("%q: want NAME:SIZE or NAME:SIZE:POLICY, such as l1:500:lru", part)
		}
		t := traceTier{name: fields[0], policy: "tinylfu"}
		if len(c) == 0 {
			t.policy = "lru"
		}
		var err error
		if t.size, err = parseTraceSize(fields[1]); err != nil {
			return nil, err
		}
		if len(c) == 0 && t.size.bytes {
			t.policy = "tinylfu"
		}
		if len(fields) == 3 {
			t.policy = fields[2]
		}
		switch {
		case !replay.Known(t.policy):
			return nil, fmt.Errorf("there is no policy %q: want one of %s", t.policy, strings.Join(replay.Policies, ", "))
		case t.size.bytes && !replay.CanBytes(t.policy):
			return nil, fmt.Errorf("%s is bounded by entries, and %s is of bytes: want tinylfu or w-tinylfu", t.policy, fields[1])
		case slices.ContainsFunc(c, func(other traceTier) bool { return other.name == t.name }):
			return nil, fmt.Errorf("%s is named twice", t.name)
		case len(c) > 0 && c[0].size.bytes != t.size.bytes:
			return nil, errors.New("one tier is bounded by bytes and another by entries, and there would be no bound for both: give all the same unit")
		case len(c) == mostTraceTiers:
			return nil, fmt.Errorf("want at most %d tiers", mostTraceTiers)
		}
		c = append(c, t)
	}
	return c, nil
}

// tiers returns what to replay for a trace of so many keys.
func (c traceCombination) tiers(keys int64) (tiers []replay.Tier, together int64) {
	for _, t := range c {
		size := t.size.of(keys)
		together += size
		tiers = append(tiers, replay.Tier{Name: t.name, Policy: t.policy, Size: size, Bytes: t.size.bytes})
	}
	return tiers, together
}
