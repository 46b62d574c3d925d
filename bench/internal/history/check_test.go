package history

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

func op(process int, kind Kind, version int, begin, end int64) Op {
	return Op{Process: process, Key: 1, Kind: kind, Version: version, Begin: begin * ms, End: end * ms}
}

func missed(o Op) Op {
	o.Missed = true
	return o
}

func failed(o Op) Op {
	o.Failed = true
	return o
}

func span(begin, end int64) Span { return Span{begin * ms, end * ms} }

// samples are one each 10 ms, from 0 to the end.
func samples(end int64, at func(ms int64, s *Sample)) (all []Sample) {
	for t := int64(0); t <= end; t += 10 {
		s := Sample{Begin: t * ms, End: t*ms + ms/10}
		at(t, &s)
		all = append(all, s)
	}
	return all
}

func calm(int64, *Sample) {}

var (
	withBus = Promise{Bus: true, Converge: 100 * time.Millisecond, Clamp: 300 * time.Millisecond, Notice: 20 * time.Millisecond, Storing: 50 * time.Millisecond}
	noBus   = Promise{Keep: 500 * time.Millisecond, Storing: 50 * time.Millisecond}
)

// Each rule finds the histories that violate it, and none that do not. Process 0 writes
// version 2 from 100 to 110 ms, unless a case says something else.
func TestRules(t *testing.T) {
	first, second := op(0, Set, 1, 0, 1), op(0, Delete, 2, 100, 110)
	idle := func() []Process { return []Process{{Samples: samples(2000, calm)}, {Samples: samples(2000, calm)}} }
	for name, test := range map[string]struct {
		promise Promise
		ops     []Op
		change  func(h *History)
		want    []Rule
	}{
		"all is well":                                {withBus, []Op{first, second, op(0, Get, 2, 111, 112), op(1, Get, 2, 150, 151)}, nil, nil},
		"own write not seen":                         {withBus, []Op{first, second, op(0, Get, 1, 111, 112)}, nil, []Rule{Own}},
		"own write, at once":                         {withBus, []Op{first, second, op(0, Get, 1, 109, 112)}, nil, nil},
		"own write, bus down":                        {withBus, []Op{first, second, op(0, Get, 1, 111, 112)}, func(h *History) { h.Processes[0].BusDown = []Span{span(0, 500)} }, []Rule{Own}},
		"own write that missed":                      {noBus, []Op{first, missed(second), op(0, Get, 1, 111, 112)}, nil, []Rule{Own}},
		"own Expire not seen":                        {withBus, []Op{first, op(0, Expire, 2, 100, 110), op(0, Get, 1, 111, 112)}, nil, []Rule{Own}},
		"own Expire, and another's load from before": {withBus, []Op{first, op(1, Load, 1, 90, 99), op(0, Expire, 2, 100, 110), op(0, Get, 1, 300, 301)}, nil, nil},
		"own Expire, and another's load from long before": {
			withBus, []Op{first, op(1, Load, 1, 2, 5), op(0, Expire, 2, 100, 110), op(0, Get, 1, 300, 301)}, nil, []Rule{Own}},
		"own Expire, and another's pending write": {withBus, []Op{first, op(0, Expire, 2, 100, 110), op(0, Get, 1, 300, 301)}, func(h *History) {
			h.Processes[1].Samples = samples(2000, func(t int64, s *Sample) { s.Pending = int(max(0, 200-t)) })
		}, nil},
		"a write that did nothing":   {withBus, []Op{first, failed(second), op(0, Get, 1, 300, 301), op(1, Get, 1, 300, 301)}, nil, nil},
		"a failed read":              {withBus, []Op{first, second, failed(op(1, Get, 0, 300, 301))}, nil, nil},
		"another key":                {withBus, []Op{first, second, {Process: 1, Key: 2, Kind: Get, Begin: 900 * ms, End: 901 * ms}}, nil, nil},
		"bus works, 90 ms later":     {withBus, []Op{first, second, op(1, Get, 1, 200, 201)}, nil, nil},
		"bus works, 110 ms later":    {withBus, []Op{first, second, op(1, Get, 1, 221, 222)}, nil, []Rule{Told}},
		"the newest of three counts": {withBus, []Op{first, second, op(0, Set, 3, 111, 115), op(1, Get, 2, 300, 301)}, nil, []Rule{Told}},
		"reader's bus down": {withBus, []Op{first, second, op(1, Get, 1, 400, 401)}, func(h *History) { h.Processes[1].BusDown = []Span{span(50, 350)} },
			nil},
		"writer's bus down": {withBus, []Op{first, second, op(1, Get, 1, 400, 401)}, func(h *History) { h.Processes[0].BusDown = []Span{span(50, 350)} },
			nil},
		"bus down and back": {withBus, []Op{first, second, op(1, Get, 1, 460, 461)}, func(h *History) { h.Processes[1].BusDown = []Span{span(50, 350)} },
			[]Rule{Told}},
		"bus works first, and is down later": {withBus, []Op{first, second, op(1, Get, 1, 400, 401)}, func(h *History) { h.Processes[1].BusDown = []Span{span(220, 600)} },
			[]Rule{Told}},
		"bus works for two short times": {withBus, []Op{first, second, op(1, Get, 1, 400, 401)}, func(h *History) {
			h.Processes[0].BusDown, h.Processes[1].BusDown = []Span{span(200, 240)}, []Span{span(210, 320)}
		}, nil},
		"a third process's bus down": {withBus, []Op{first, second, op(1, Get, 1, 400, 401)}, func(h *History) {
			h.Processes = append(h.Processes, Process{BusDown: []Span{span(50, 900)}})
		}, []Rule{Told}},
		"reader stalled": {withBus, []Op{first, second, op(1, Get, 1, 260, 261)}, func(h *History) { h.Processes[1].Stalls = []Span{span(120, 180)} }, nil},
		"server stalled": {withBus, []Op{first, second, op(1, Get, 1, 260, 261)}, func(h *History) { h.Stalls = []Span{span(120, 180)} }, nil},
		"stalled, but not so long": {withBus, []Op{first, second, op(1, Get, 1, 280, 281)}, func(h *History) {
			h.Processes[1].Stalls, h.Processes[0].Stalls = []Span{span(120, 180)}, []Span{span(150, 170)}
		}, []Rule{Told}},
		"missed, arrived late": {withBus, []Op{first, missed(second), op(1, Get, 1, 380, 381)}, func(h *History) {
			h.Processes[0].Samples = samples(2000, func(t int64, s *Sample) { s.Pending = int(max(0, 300-t)) })
		}, nil},
		"missed, arrived long ago": {withBus, []Op{first, missed(second), op(1, Get, 1, 420, 421)}, func(h *History) {
			h.Processes[0].Samples = samples(2000, func(t int64, s *Sample) { s.Pending = int(max(0, 300-t)) })
		}, []Rule{Told}},
		"missed, never arrived": {withBus, []Op{first, missed(second), op(1, Get, 1, 1900, 1901)}, func(h *History) {
			h.Processes[0].Samples = samples(2000, func(_ int64, s *Sample) { s.Pending = 1 })
		}, nil},
		"gap noticed": {withBus, []Op{first, second, op(1, Get, 1, 400, 401)}, func(h *History) {
			h.Processes[1].BusDown = []Span{span(50, 900)}
			h.Processes[1].Samples = samples(2000, func(t int64, s *Sample) { s.Gaps = uint64(t / 340) })
		}, []Rule{Gapped}},
		"gap noticed this moment": {withBus, []Op{first, second, op(1, Get, 1, 350, 351)}, func(h *History) {
			h.Processes[1].BusDown = []Span{span(50, 900)}
			h.Processes[1].Samples = samples(2000, func(t int64, s *Sample) { s.Gaps = uint64(t / 340) })
		}, nil},
		"gap noticed before the write": {withBus, []Op{first, second, op(1, Get, 1, 400, 401)}, func(h *History) {
			h.Processes[1].BusDown = []Span{span(10, 900)}
			h.Processes[1].Samples = samples(2000, func(t int64, s *Sample) { s.Gaps = uint64((t + 950) / 1000) })
		}, nil},
		"bus known to be lost": {withBus, []Op{first, second, op(1, Get, 1, 500, 501)}, func(h *History) {
			h.Processes[1].BusDown = []Span{span(50, 900)}
			h.Processes[1].Samples = samples(2000, func(t int64, s *Sample) { s.Lost = t > 60 })
		}, []Rule{Clamped}},
		"bus known to be lost not so long": {withBus, []Op{first, second, op(1, Get, 1, 500, 501)}, func(h *History) {
			h.Processes[1].BusDown = []Span{span(50, 900)}
			h.Processes[1].Samples = samples(2000, func(t int64, s *Sample) { s.Lost = t > 300 })
		}, nil},
		"bus known to be lost, and the tier is": {withBus, []Op{first, second, op(1, Get, 1, 500, 501)}, func(h *History) {
			h.Processes[1].BusDown, h.Processes[1].TierDown = []Span{span(50, 900)}, []Span{span(300, 350)}
			h.Processes[1].Samples = samples(2000, func(t int64, s *Sample) { s.Lost = t > 60 })
		}, nil},
		"without a bus, kept":          {noBus, []Op{first, second, op(1, Get, 1, 600, 601)}, nil, nil},
		"without a bus, kept too long": {noBus, []Op{first, second, op(1, Get, 1, 620, 621)}, nil, []Rule{Kept}},
		"kept, stalled":                {noBus, []Op{first, second, op(1, Get, 1, 620, 621)}, func(h *History) { h.Processes[1].Stalls = []Span{span(300, 330)} }, nil},
		"kept, with writes of its own to tell": {noBus, []Op{first, second, op(1, Get, 1, 800, 801)}, func(h *History) {
			h.Processes[1].Samples = samples(2000, func(t int64, s *Sample) { s.Pending = int(max(0, 400-t)) })
		}, nil},
		"kept, long after it had told them": {noBus, []Op{first, second, op(1, Get, 1, 920, 921)}, func(h *History) {
			h.Processes[1].Samples = samples(2000, func(t int64, s *Sample) { s.Pending = int(max(0, 400-t)) })
		}, []Rule{Kept}},
		"a version that nobody has written": {noBus, []Op{first, second, op(1, Get, 3, 120, 121)}, nil, []Rule{Made}},
		"a version of the future":           {noBus, []Op{first, op(1, Get, 2, 90, 99), second}, nil, []Rule{Made}},
		"a version being written":           {noBus, []Op{first, op(1, Get, 2, 90, 105), second}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := &History{Ops: test.ops, Processes: idle()}
			if test.change != nil {
				test.change(h)
			}
			var got []Rule
			for _, v := range h.Check(test.promise).Violations {
				got = append(got, v.Rule)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	h := &History{Processes: []Process{{}, {}}, Ops: []Op{
		op(0, Set, 1, 0, 1), op(0, Set, 2, 100, 110), op(1, Get, 1, 130, 131), op(1, Get, 1, 120, 122), op(1, Get, 2, 125, 126),
		failed(op(1, Get, 0, 140, 150)), op(1, Load, 2, 124, 125),
	}}
	got := h.Check(withBus)
	if got.Reads != 3 || got.Writes != 2 || got.Failed != 1 || len(got.Violations) != 0 {
		t.Errorf("got %+v", got)
	}
	if want := []time.Duration{10 * time.Millisecond, 20 * time.Millisecond}; !slices.Equal(got.Stale, want) {
		t.Errorf("stale: got %v, want %v", got.Stale, want)
	}
	v := Violation{Told, op(1, Get, 1, 230, 231), missed(op(0, Delete, 2, 100, 110)), 20 * time.Millisecond}
	for _, want := range []string{"bus works: process 2 read version 1 of key 1", "+120.0ms", "a delete of version 2 by process 1 from -10.0ms", "had missed", "20ms too late"} {
		if !strings.Contains(v.String(), want) {
			t.Errorf("%q is missing in %q", want, v)
		}
	}
}
