package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Comparison gives several strategies the same requests for one key, all at the same
// time, each with an origin of its own. All begin with a value that was just loaded.
type Comparison struct {
	Strategies []Strategy
	Arrivals   Arrivals
	Origin     OriginOptions
	// SlowAbove is what a slow read takes longer than.
	SlowAbove time.Duration
	// Seed is of what strategies draw.
	Seed uint64

	// Await waits until an instant, or returns false when the context ends. Nil: by a
	// timer of the runtime, which in real time may be late by a millisecond.
	Await func(ctx context.Context, until tier.Instant) bool
	// Progress, if any, is told from time to time how much of the arrivals' length is over.
	Progress func(time.Duration)
}

// Outcome is what one strategy did.
type Outcome struct {
	Strategy Strategy
	Reads    Reads
	// Origin's Begun are kept as Calls, from the first arrival's start.
	Origin OriginCounts
	Calls  []time.Duration
}

// Result is what a comparison found.
type Result struct {
	Outcomes []Outcome
	// Lasted is how long requests came: the arrivals' length, or less where the context
	// ended.
	Lasted time.Duration
	// Late is the most by which a request came late: strategies of which many readers
	// load are judged by their requests' times.
	Late time.Duration
}

// contestant is a strategy at work.
type contestant struct {
	strategy Strategy
	origin   *Origin
	reader   reader
	tally    tally
}

// closeWithin is how long strategies are given for what they do in the background.
const closeWithin = 10 * time.Second

// Run runs the comparison. When the context ends it returns the context's error with
// what was done by then; the result is empty if requests had not begun.
func (c Comparison) Run(ctx context.Context) (result Result, err error) {
	if err := c.Arrivals.Validate(); err != nil {
		return Result{}, err
	}
	all, err := c.open(ctx)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer cancel()
		for _, each := range all {
			err = errors.Join(err, each.reader.close(ctx))
		}
	}()
	if err != nil {
		return Result{}, err
	}
	for _, each := range all {
		each.origin.Mark()
	}
	start := tier.Now()
	result.Late = c.arrive(ctx, start, all)
	result.Lasted = min(tier.Now().Sub(start), c.Arrivals.Length)
	for _, each := range all {
		o := Outcome{Strategy: each.strategy, Reads: each.tally.sum(), Origin: each.origin.Counts()}
		for _, at := range o.Origin.Begun {
			o.Calls = append(o.Calls, at.Sub(start))
		}
		result.Outcomes = append(result.Outcomes, o)
	}
	return result, ctx.Err()
}

// open makes all strategies, warm.
func (c Comparison) open(ctx context.Context) ([]*contestant, error) {
	var all []*contestant
	for _, s := range c.Strategies {
		options := c.Origin
		options.Seed += c.Seed
		each := &contestant{strategy: s, origin: NewOrigin(options), tally: tally{slowAbove: c.SlowAbove}}
		r, err := s.open(each.origin, c.Seed)
		if err != nil {
			return all, fmt.Errorf("%s: %w", s.Name, err)
		}
		each.reader = r
		all = append(all, each)
	}
	errs := make([]error, len(all))
	var warming sync.WaitGroup
	for i, each := range all {
		warming.Go(func() {
			if err := each.reader.warm(ctx, key); err != nil {
				errs[i] = fmt.Errorf("%s: %w", each.strategy.Name, err)
			}
		})
	}
	warming.Wait()
	return all, errors.Join(errs...)
}

// arrive makes all requests and waits for their answers.
func (c Comparison) arrive(ctx context.Context, start tier.Instant, all []*contestant) (late time.Duration) {
	await := c.Await
	if await == nil {
		await = until
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	told := time.Duration(0)
	for _, at := range c.Arrivals.Times() {
		if !await(ctx, start.Add(at)) {
			return late
		}
		late = max(late, tier.Now().Sub(start.Add(at)))
		for _, each := range all {
			reading.Go(func() { each.tally.read(ctx, each.reader) })
		}
		if c.Progress != nil && at-told >= time.Second {
			told = at
			c.Progress(at)
		}
	}
	await(ctx, start.Add(c.Arrivals.Length))
	return late
}
