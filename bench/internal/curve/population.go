package curve

import (
	"cmp"
	"context"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/trace"
)

// population is how popular the keys of a trace are, as far as it matters for which of them
// stand for the others.
//
// By hash alone a part has some of the most popular keys by chance, and another share of the
// requests than of the keys. So keys that any of the stores has all the time are left out, as
// what becomes of them is known, and of the next most popular every n-th is taken, by their
// order of popularity (systematic sampling from a list in order of size: Madow and Madow, "On
// the theory of systematic sampling, I", Annals of Mathematical Statistics 1944). The rest
// are told by hash.
type population struct {
	seed  uint64
	rank  map[uint64]int // of popular keys that are not hot, from 0, the most popular first
	hot   map[uint64]struct{}
	shift float64

	hotRequests, hotHits int64
}

const (
	// mostPopular is how many keys are told apart by how popular they are.
	mostPopular = 1 << 15
	// hotTimes is how often, on average, a hot key is asked for in as many requests as the
	// smallest store has entries: then there is always room for it. There are no more hot
	// keys than this part of those entries.
	hotTimes = 20
)

// asked is what became of a key.
type asked struct {
	times int64 // requests
	hits  int64 // in a store that has it from its first request on, until it is deleted
	held  bool
}

// survey counts how often the popular keys are asked for, in two passes. The smallest store
// has the given entries.
func survey(ctx context.Context, rec *capture.Trace, smallest int64, seed uint64) (*population, error) {
	counts, err := frequent(ctx, rec, mostPopular)
	if err != nil {
		return nil, err
	}
	err = rec.Each(ctx, func(b *capture.Batch) error {
		for i := range b.Requests {
			q := &b.Requests[i]
			c := counts[q.Key]
			if c == nil {
				continue
			}
			c.times++
			if c.held && q.Op != trace.Delete {
				c.hits++
			}
			c.held = q.Op != trace.Delete
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	keys := make([]uint64, 0, len(counts))
	for key := range counts {
		keys = append(keys, key)
	}
	// Not by the keys where they are as popular: neighbors are often asked for together.
	order := func(key uint64) uint64 { return rand.NewPCG(key, seed).Uint64() }
	slices.SortFunc(keys, func(x, y uint64) int {
		return cmp.Or(cmp.Compare(counts[y].times, counts[x].times), cmp.Compare(order(x), order(y)), cmp.Compare(x, y))
	})
	p := &population{
		seed: seed, rank: make(map[uint64]int, len(keys)), hot: make(map[uint64]struct{}),
		shift: rand.New(rand.NewPCG(seed, 11)).Float64(),
	}
	least := float64(hotTimes) * float64(rec.Counts().Requests) / float64(max(1, smallest))
	for _, key := range keys {
		if c := counts[key]; float64(c.times) > least {
			p.hot[key] = struct{}{}
			p.hotRequests += c.times
			p.hotHits += c.hits
			continue
		}
		p.rank[key] = len(p.rank)
	}
	return p, nil
}

// frequent returns some keys, those that are asked for more often than once in n requests
// among them, and n at most (Misra and Gries, "Finding repeated elements", Science of
// Computer Programming 1982).
func frequent(ctx context.Context, rec *capture.Trace, n int) (map[uint64]*asked, error) {
	counts := make(map[uint64]*asked)
	err := rec.Each(ctx, func(b *capture.Batch) error {
		for i := range b.Requests {
			key := b.Requests[i].Key
			switch c := counts[key]; {
			case c != nil:
				c.times++
			case len(counts) < n:
				counts[key] = &asked{times: 1}
			default:
				for key, c := range counts {
					if c.times--; c.times == 0 {
						delete(counts, key)
					}
				}
			}
		}
		return nil
	})
	for _, c := range counts {
		c.times = 0
	}
	return counts, err
}

// has reports whether the key is in the part [from, to) of [0, 1) of those that are not hot.
// Multiples of the golden ratio fill each such part evenly, and so do ranks in it.
func (p *population) has(key uint64, from, to float64) bool {
	if _, hot := p.hot[key]; hot {
		return false
	}
	rank, popular := p.rank[key]
	if !popular {
		return capture.Part{From: from, To: to, Seed: p.seed}.Has(key)
	}
	_, at := math.Modf(p.shift + float64(rank)*math.Phi)
	return at >= from && at < to
}

// part returns the requests of a part of the keys. It is linked.
func (p *population) part(ctx context.Context, rec *capture.Trace, from, to float64) (*capture.Trace, error) {
	var broken error
	next, stop := iter.Pull(func(yield func(trace.Request) bool) {
		broken = rec.Each(ctx, func(b *capture.Batch) error {
			for i := range b.Requests {
				if q := b.Requests[i]; p.has(q.Key, from, to) && !yield(q) {
					return context.Canceled
				}
			}
			return nil
		})
	})
	defer stop()
	part, err := capture.Generate(ctx, "", rec.Fields(), func(q *trace.Request) (more bool) {
		*q, more = next()
		return more
	})
	if err != nil {
		return nil, err
	}
	if err = broken; err == nil {
		err = part.Link(ctx, nothing)
	}
	if err != nil {
		part.Close()
		return nil, err
	}
	return part, nil
}
