package capture

import (
	"context"

	"github.com/terracecache/terrace/bench/internal/trace"
)

// Part is a part of all keys, chosen by their hash: those of which it falls into
// [From, To) of [0, 1).
type Part struct {
	From, To float64
	Seed     uint64 // of the hash
}

// Has reports whether the key is in the part.
func (p Part) Has(key uint64) bool {
	at := p.at(key)
	return at >= p.From && at < p.To
}

// at returns the key's place in [0, 1). Its hash is another than that of [Trace.Link],
// which splits keys too.
func (p Part) at(key uint64) float64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	return float64(mix(mix(key+golden)^p.Seed*golden)>>11) / (1 << 53)
}

// Sample returns a recording, in files of its own, of those requests whose keys are in
// the part, in their order. It is not linked.
func (r *Trace) Sample(ctx context.Context, p Part) (*Trace, error) {
	s, err := newTrace(r.dir, r.fields)
	if err != nil {
		return nil, err
	}
	err = r.Each(ctx, func(b *Batch) error {
		for i := range b.Requests {
			q := &b.Requests[i]
			if !p.Has(q.Key) {
				continue
			}
			if err := s.add(q); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.flush()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Generate records requests that next makes, until it returns false. They have no more
// than their keys and operations. It is not linked.
func Generate(ctx context.Context, dir string, fields trace.Fields, next func(*trace.Request) bool) (*Trace, error) {
	g, err := newTrace(dir, fields)
	if err != nil {
		return nil, err
	}
	for q := new(trace.Request); err == nil && next(q); *q = (trace.Request{}) {
		if g.counts.Requests%chunk == 0 {
			if err = ctx.Err(); err != nil {
				break
			}
		}
		err = g.add(q)
	}
	if err == nil {
		err = g.flush()
	}
	if err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}
