// Package curve estimates what caches of many sizes and evictions do on a trace, with a
// fraction of the work of replaying it through each.
//
// A part of the keys, chosen by hash, is replayed through the real stores, made smaller in
// the same proportion (Waldspurger, Saemundson, Ahmad and Park, "Cache Modeling and
// Optimization using Miniature Simulations", USENIX ATC 2017). The share of requests that
// is missing or too much in the part, as popular keys are in it or not, is made up for as
// requests that are hits (SHARDS-adj: Waldspurger, Park, Garthwaite and Ahmad, "Efficient
// MRC Construction with SHARDS", FAST 2015).
package curve

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/optimal"
	"github.com/terracecache/terrace/bench/internal/replay"
)

// Options are how a trace is reduced.
type Options struct {
	// Rate is the share of keys to take; zero: what the trace and the sizes ask for.
	Rate float64
	// Smallest is the least size that is going to be asked for, in entries.
	Smallest int64
	Seed     uint64 // of the choice of keys
}

const (
	// fewRequests are replayed in no time: a trace of so many is taken as a whole.
	fewRequests = 250_000
	// most is the share of a longer trace.
	most = 0.1
	// enoughKeys are as many as are needed, whatever the length: the error goes with
	// the root of their number.
	enoughKeys = 1 << 16
	// spared is the least share that a part leaves out: less saves nothing, and errs.
	spared = 0.5
	// leastEntries is what the smallest store has to hold: evictions with parts, such
	// as the window of W-TinyLFU, are not themselves in fewer.
	leastEntries = 200
)

// Fine returns the least size that a tenth of the keys, or fewer, are enough for.
func Fine(requests int64) int64 {
	if requests <= fewRequests {
		return 1
	}
	return leastEntries / most
}

// rate returns the share of the keys that is needed.
func (o Options) rate(requests, keys int64) float64 {
	if o.Rate > 0 {
		return min(o.Rate, 1)
	}
	if requests <= fewRequests {
		return 1
	}
	r := min(most, enoughKeys/float64(keys))
	r = max(r, leastEntries/float64(max(1, o.Smallest)))
	if r > 1-spared {
		return 1
	}
	return r
}

// Mini is a trace, or a part of its keys. Its methods may be called concurrently.
type Mini struct {
	// Share is how many of the trace's keys are in it; 1: all, and nothing is estimated.
	Share float64
	seed  uint64
	whole *capture.Trace
	part  *capture.Trace // the same as whole where it is that
	wants float64        // requests that there would be of the share
	work  atomic.Int64
}

// Reduce chooses a part of the keys of a recording, which is linked, and not closed
// before the part is.
func Reduce(ctx context.Context, rec *capture.Trace, o Options) (*Mini, error) {
	m := &Mini{Share: 1, seed: o.Seed, whole: rec, part: rec, wants: float64(rec.Counts().Requests)}
	rate := o.rate(rec.Counts().Requests, rec.Distinct())
	if rate == 1 {
		return m, nil
	}
	part, err := rec.Sample(ctx, capture.Part{To: rate, Seed: o.Seed})
	if err != nil {
		return nil, err
	}
	if err := m.take(ctx, part); err != nil {
		part.Close()
		return nil, err
	}
	return m, nil
}

// take makes a part of the whole what is replayed.
func (m *Mini) take(ctx context.Context, part *capture.Trace) error {
	if err := part.Link(ctx, nothing); err != nil {
		return err
	}
	if part.Distinct() == 0 {
		return errors.New("no key of the trace is in the sample: take a greater part of them")
	}
	m.part = part
	// Not the rate: by chance there are a few keys more or less, and a cache of all keys
	// has to be one here too.
	m.Share = float64(part.Distinct()) / float64(m.whole.Distinct())
	m.wants = float64(m.whole.Counts().Requests) * m.Share
	return nil
}

func nothing(int64) {}

// Spread estimates how far off the estimates are, in shares of 1: it takes each half of
// the part for itself, and compares what an LRU of the given sizes does in them, of whose
// difference the half is about the standard error of both together. Zero: there is
// nothing to be off.
func (m *Mini) Spread(ctx context.Context, sizes []int64) (float64, error) {
	if !m.Sampled() {
		return 0, nil
	}
	var halves [2]func(int64) Estimate
	for i := range halves {
		// By another seed, as hashes of the part's keys are all in its beginning.
		half, err := m.part.Sample(ctx, capture.Part{From: float64(i) / 2, To: float64(i+1) / 2, Seed: ^m.seed})
		if err != nil {
			return 0, err
		}
		defer half.Close()
		h := &Mini{whole: m.whole}
		if err := h.take(ctx, half); err != nil {
			return 0, err
		}
		if halves[i], err = h.LRU(ctx, nothing); err != nil {
			return 0, err
		}
		m.work.Add(h.Work())
	}
	most := 0.0
	for _, size := range sizes {
		most = max(most, math.Abs(halves[0](size).HitRatio-halves[1](size).HitRatio)/2)
	}
	return most, nil
}

// Close removes what [Reduce] has made.
func (m *Mini) Close() {
	if m.Sampled() {
		m.part.Close()
	}
}

// Sampled reports whether it is a part.
func (m *Mini) Sampled() bool { return m.part != m.whole }

// Requests returns how many requests it has.
func (m *Mini) Requests() int64 { return m.part.Counts().Requests }

// Keys returns how many keys it has.
func (m *Mini) Keys() int64 { return m.part.Distinct() }

// Work returns how many requests have been replayed so far.
func (m *Mini) Work() int64 { return m.work.Load() }

// Estimate is what caches are expected to do with the whole trace.
type Estimate struct {
	HitRatio float64   // of all requests
	Tiers    []float64 // the share that each tier answers, from the top
}

// scale returns the size in the part that stands for one in the whole.
func (m *Mini) scale(size int64) int64 {
	return max(1, int64(math.Round(float64(size)*m.Share)))
}

// ratio returns the share of requests that are hits.
func (m *Mini) ratio(hits int64) float64 {
	missing := m.wants - float64(m.part.Counts().Requests)
	return min(max((float64(hits)+missing)/m.wants, 0), 1)
}

// LRU returns what an LRU does, of any size. tick is told how many requests are done, as
// it is by the other estimates.
func (m *Mini) LRU(ctx context.Context, tick func(int64)) (func(size int64) Estimate, error) {
	d, err := MeasureDistances(ctx, m.part, tick)
	if err != nil {
		return nil, err
	}
	m.work.Add(d.requests)
	return func(size int64) Estimate {
		r := m.ratio(d.Hits(m.scale(size)))
		return Estimate{HitRatio: r, Tiers: []float64{r}}
	}, nil
}

// Replay returns what tiers do, whose sizes are those for the whole trace.
func (m *Mini) Replay(ctx context.Context, tiers []replay.Tier, tick func(int64)) (Estimate, error) {
	scaled := make([]replay.Tier, len(tiers))
	for i, t := range tiers {
		scaled[i] = t
		scaled[i].Size = m.scale(t.Size)
	}
	result, err := replay.Run(ctx, m.part, scaled, tick)
	if err != nil {
		return Estimate{}, err
	}
	m.work.Add(result.Requests)
	e := Estimate{HitRatio: m.ratio(result.Hits)}
	left := e.HitRatio - float64(result.Hits)/m.wants // what is made up for, in the first tier
	for _, t := range result.Tiers {
		share := float64(t.Hits)/m.wants + left
		left = min(share, 0)
		e.Tiers = append(e.Tiers, max(share, 0))
	}
	return e, nil
}

// Bound returns what the best possible cache does.
func (m *Mini) Bound(ctx context.Context, size int64, tick func(int64)) (Estimate, error) {
	tally, err := optimal.Belady(ctx, m.part, m.scale(size), tick)
	m.work.Add(tally.Requests)
	r := m.ratio(tally.Hits)
	return Estimate{HitRatio: r, Tiers: []float64{r}}, err
}
