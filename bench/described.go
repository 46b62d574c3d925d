package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/trace"
)

// describe draws the requests that the settings describe into a recording, which is
// linked: of the i-th of the keys in proportion to 1/i^skew.
func (s *adviseSettings) describe(ctx context.Context, p *traceProgress) (*capture.Trace, *traceOfRows, error) {
	sums := make([]float64, s.Keys)
	sum := 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -s.Zipf)
		sums[i] = sum
	}
	r := rand.New(rand.NewPCG(s.Seed, 3))
	left := s.Requests
	rec, err := capture.Generate(ctx, "", trace.Fields{}, func(q *trace.Request) bool {
		k := sort.SearchFloat64s(sums, r.Float64()*sum)
		q.Key = uint64(min(k, s.Keys-1)) // rounding can pass the end
		left--
		return left >= 0
	})
	if err != nil {
		return nil, nil, err
	}
	if err := rec.Link(ctx, p.linking(int64(s.Requests))); err != nil {
		rec.Close()
		return nil, nil, err
	}
	about := &traceOfRows{Trace: s.label(), Format: "described", FirstMalformed: []string{}, Notes: []string{}, Keys: rec.Distinct()}
	about.count(rec)
	return rec, about, nil
}

// label tells people what the requests are.
func (s *adviseSettings) label() string {
	if s.file != "" {
		return s.file
	}
	return fmt.Sprintf("zipf %v over %d keys", s.Zipf, s.Keys)
}
