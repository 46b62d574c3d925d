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
	// Most is the share of the requests that the part may have, unless the smallest store
	// would have too few entries by it; zero: a tenth.
	Most float64
	// Smallest is the least size that is going to be asked for, in entries.
	Smallest int64
	Seed     uint64 // of the choice of keys
}

const (
	// Few requests are replayed in no time: a trace of so many is taken as a whole.
	Few = 250_000
	// Tenth is the share of a longer trace that may be replayed.
	Tenth = 0.1
	// enoughKeys are as many as are needed, whatever the length: the error goes with
	// the root of their number.
	enoughKeys = 1 << 16
	// spared is the least share of requests that a part leaves out: less saves nothing, and errs.
	spared = 0.5
	// LeastEntries is what the smallest store has to hold: evictions with parts, such
	// as the window of W-TinyLFU, are not themselves in fewer.
	LeastEntries = 100
	// LeastKeys are as few as can stand for all: loops over fewer are not like one over all.
	LeastKeys = 2000
)

// rate returns the share of the keys that is needed where those that are not hot have the
// given share of the requests.
func (o Options) rate(keys int64, cold float64) float64 {
	if o.Rate > 0 {
		return min(o.Rate, 1)
	}
	most := o.Most
	if most == 0 {
		most = Tenth
	}
	r := min(most/max(cold, most), enoughKeys/float64(max(1, keys)))
	return max(r, o.least(keys))
}

// least returns the share of keys with which they are enough, and the smallest store has enough
// entries.
func (o Options) least(keys int64) float64 {
	return min(1, max(LeastEntries/float64(max(1, o.Smallest)), LeastKeys/float64(max(1, keys))))
}

// Mini is a trace, or a part of its keys. Its methods may be called concurrently.
type Mini struct {
	// Share is how many of the trace's keys are in it; 1: all, and nothing is estimated.
	// Keys so popular that any store has them are in no part.
	Share float64
	rate  float64
	whole *capture.Trace
	part  *capture.Trace // the same as whole where it is that
	of    *population    // nil: the whole
	wants float64        // requests that there would be of the share
	work  *atomic.Int64
}

// Reduce chooses a part of the keys of a recording, which is linked, and not closed
// before the part is.
func Reduce(ctx context.Context, rec *capture.Trace, o Options) (*Mini, error) {
	requests := rec.Counts().Requests
	whole := &Mini{Share: 1, whole: rec, part: rec, of: new(population), wants: float64(requests), work: new(atomic.Int64)}
	if o.Rate >= 1 || o.Rate == 0 && requests <= Few {
		return whole, nil
	}
	of, err := survey(ctx, rec, o.Smallest, o.Seed)
	if err != nil {
		return nil, err
	}
	cold := 1 - float64(of.hotRequests)/float64(max(1, requests))
	keys := rec.Distinct() - int64(len(of.hot))
	rate, least := o.rate(keys, cold), o.least(keys)
	for {
		if o.Rate == 0 && rate*cold > 1-spared {
			return whole, nil
		}
		part, err := of.part(ctx, rec, 0, rate)
		if err != nil {
			return nil, err
		}
		// By chance it may have more requests than a part of so many keys should.
		if has := float64(part.Counts().Requests) / float64(requests); o.Rate == 0 && o.Most > 0 && has > o.Most && rate > least {
			part.Close()
			rate = max(0.98*rate*o.Most/has, least)
			continue
		}
		m := &Mini{whole: rec, rate: rate, of: of, work: new(atomic.Int64)}
		if err := m.take(part); err != nil {
			part.Close()
			return nil, err
		}
		return m, nil
	}
}

// take makes a part of the whole what is replayed.
func (m *Mini) take(part *capture.Trace) error {
	if part.Distinct() == 0 {
		return errors.New("no key of the trace is in the sample: take a greater part of them")
	}
	m.part = part
	// Not the rate: by chance there are a few keys more or less, and a cache of all keys
	// has to be one here too.
	m.Share = float64(part.Distinct()) / float64(m.whole.Distinct()-int64(len(m.of.hot)))
	m.wants = float64(m.whole.Counts().Requests-m.of.hotRequests) * m.Share
	return nil
}

func nothing(int64) {}

// groups are what [Mini.Spread] splits a part into.
const groups = 4

// Spread estimates the standard error of the estimates, in shares of 1: it takes each quarter of
// the part for itself, and compares what an LRU of the given sizes does in them. It is that of the size where it is
// greatest. Zero: there is nothing to be off; one: there are too few keys to tell.
func (m *Mini) Spread(ctx context.Context, sizes []int64) (float64, error) {
	if !m.Sampled() {
		return 0, nil
	}
	var of []func(int64) Estimate
	for i := range groups {
		part, err := m.of.part(ctx, m.part, m.rate*float64(i)/groups, m.rate*float64(i+1)/groups)
		if err != nil {
			return 0, err
		}
		defer part.Close()
		if part.Distinct() == 0 {
			return 1, nil
		}
		g := &Mini{whole: m.whole, of: m.of, work: m.work}
		if err := g.take(part); err != nil {
			return 0, err
		}
		lru, err := g.LRU(ctx, nothing)
		if err != nil {
			return 0, err
		}
		of = append(of, lru)
	}
	most := 0.0
	for _, size := range sizes {
		mean, squares := 0.0, 0.0
		for _, lru := range of {
			mean += lru(size).HitRatio / groups
		}
		for _, lru := range of {
			off := lru(size).HitRatio - mean
			squares += off * off
		}
		most = max(most, math.Sqrt(squares/(groups-1)/groups))
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

// Whole returns how many the whole trace has.
func (m *Mini) Whole() int64 { return m.whole.Counts().Requests }

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
	return max(1, int64(math.Round(float64(size-int64(len(m.of.hot)))*m.Share)))
}

// ratio returns the share of requests that are hits: those of hot keys, and of the part's.
func (m *Mini) ratio(hits int64) float64 {
	missing := m.wants - float64(m.part.Counts().Requests)
	cold := min(max(float64(hits)+missing, 0), m.wants) / m.Share
	return (float64(m.of.hotHits) + cold) / float64(m.whole.Counts().Requests)
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

// Replay returns what tiers do, whose sizes are those for the whole trace and whose hashes
// have the seed.
func (m *Mini) Replay(ctx context.Context, tiers []replay.Tier, seed uint64, tick func(int64)) (Estimate, error) {
	scaled := make([]replay.Tier, len(tiers))
	for i, t := range tiers {
		scaled[i] = t
		scaled[i].Size = m.scale(t.Size)
	}
	result, err := replay.Run(ctx, m.part, scaled, seed, tick)
	if err != nil {
		return Estimate{}, err
	}
	m.work.Add(result.Requests)
	e := Estimate{HitRatio: m.ratio(result.Hits)}
	all := m.Share * float64(m.whole.Counts().Requests)
	left := e.HitRatio - float64(result.Hits)/all // what is made up for, in the first tier
	for _, t := range result.Tiers {
		share := float64(t.Hits)/all + left
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
