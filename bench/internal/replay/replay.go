package replay

import (
	"context"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/trace"
	"github.com/terracecache/terrace/tier"
)

// Result is what a combination of tiers did.
type Result struct {
	capture.Tally
	Tiers []TierResult // from the top
}

// TierResult is what one tier did.
type TierResult struct {
	Tier
	Hits int64
	// Held is the most that it was seen to hold, in the unit of its size: by its own
	// account now and then, and in the end by asking for every key of the trace.
	Held int64
}

// between is how many misses go by between two looks at what stores say they hold.
const between = 64

// Run replays the recording, which is linked, through tiers of which the first is on top,
// by the rules of the coordinator: a key that is found in a tier goes into those above it,
// and one that is in none into all. A write is a request like a read, which finds its key
// or puts it there; a deletion removes it, from the bottom up. tick is told how many
// requests are done. What Terrace's own stores have is the same for each seed; those of
// other projects draw by chance.
func Run(ctx context.Context, rec *capture.Trace, tiers []Tier, seed uint64, tick func(int64)) (Result, error) {
	if byRecency(rec, tiers) {
		return recency(ctx, rec, tiers[0], tick)
	}
	var r run
	defer r.close()
	for i, t := range tiers {
		s, err := seededStore(t, seed+uint64(i)<<32) // no two tiers hash alike
		if err != nil {
			return Result{}, err
		}
		r.stores = append(r.stores, s)
		r.bytes = r.bytes || t.Bytes
	}
	err := rec.Each(ctx, func(b *capture.Batch) error {
		for i := range b.Requests {
			if err := r.request(ctx, &b.Requests[i]); err != nil {
				return err
			}
		}
		tick(b.First + int64(len(b.Requests)))
		return nil
	})
	if err == nil {
		err = r.probe(ctx, rec)
	}
	result := Result{Tally: r.tally}
	for _, s := range r.stores {
		result.Tiers = append(result.Tiers, TierResult{s.Tier, s.hits, s.held})
	}
	return result, err
}

// run is a replay under way.
type run struct {
	stores []*store
	bytes  bool // the stores are bounded by sizes
	tally  capture.Tally
	misses int64
}

func (r *run) request(ctx context.Context, q *trace.Request) error {
	if q.Op == trace.Delete {
		r.tally.Count(q, false)
		for i := len(r.stores) - 1; i >= 0; i-- {
			if err := r.stores[i].Delete(ctx, q.Key); err != nil {
				return err
			}
			r.stores[i].settle()
		}
		return nil
	}
	found, e, err := r.find(ctx, q.Key)
	if err != nil {
		return err
	}
	hit := e != nil
	r.tally.Count(q, hit)
	to := r.stores[:found]
	switch {
	case !hit:
		e = r.entry(q.Size)
		r.misses++
	default:
		r.stores[found].hits++
		if r.bytes && e.Value() != max(1, q.Size) { // the object has changed
			to, e = r.stores, r.entry(q.Size)
		}
	}
	for _, s := range to {
		if err := s.Set(ctx, q.Key, e, tier.Forever); err != nil {
			return err
		}
		s.settle()
		if r.misses%between == 0 {
			s.measure()
		}
	}
	return nil
}

// find returns the first store that holds the key, or how many there are.
func (r *run) find(ctx context.Context, key uint64) (int, *entry, error) {
	for i, s := range r.stores {
		if e, err := s.Get(ctx, key); e != nil || err != nil {
			return i, e, err
		}
	}
	return len(r.stores), nil, nil
}

// unsized is the entry of all objects where no store is bounded by their sizes.
var unsized = tier.NewEntry[int64](1, tier.Meta{UsableUntil: tier.Never})

func (r *run) entry(size int64) *entry {
	if !r.bytes {
		return unsized
	}
	return tier.NewEntry(max(1, size), tier.Meta{UsableUntil: tier.Never})
}

// probe counts what the stores hold, whatever they say: each key is asked for once, when
// it comes for the last time in the trace.
func (r *run) probe(ctx context.Context, rec *capture.Trace) error {
	held := make([]int64, len(r.stores))
	err := rec.Each(ctx, func(b *capture.Batch) error {
		for i, next := range b.Next {
			if next != capture.Never {
				continue
			}
			for j, s := range r.stores {
				e, err := s.Get(ctx, b.Requests[i].Key)
				switch {
				case err != nil:
					return err
				case e == nil:
				case s.Bytes:
					held[j] += e.Value()
				default:
					held[j]++
				}
			}
		}
		return nil
	})
	for j, s := range r.stores {
		s.measure()
		s.held = max(s.held, held[j])
	}
	return err
}

func (r *run) close() {
	for _, s := range r.stores {
		s.Close()
	}
}
