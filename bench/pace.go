package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/tier"
)

// pace hands out the intended starts of an open loop: the i-th is i/rate seconds
// after the first, whether or not the reads before it are done. A read's latency
// counts from its intended start, so that a read which could not start in time,
// because all workers were held up, counts its wait as a user would (no coordinated
// omission).
//
// One worker at a time waits for the next start; then it passes the turn on and
// reads itself, on the processor on which it woke.
type pace struct {
	turn  chan struct{} // holds one token; a channel, as it can be waited for with a context
	start tier.Instant
	gap   float64 // nanoseconds from one start to the next
	n     int     // how many starts there are
	batch int     // so many starts are at the time of their first; zero: each has its own
	nap   func(time.Duration)

	// at are when the starts are instead, as many as there are, of which from is the first
	// moment.
	at   []time.Duration
	from time.Duration

	workers int
	idle    atomic.Int64 // workers that wait for a start
	busy    atomic.Int64 // workers that are under way

	// The following are guarded by the turn.
	taken   int
	heldUp  int           // starts that were due when no worker was idle
	heldFor time.Duration // the longest that one of them was late for that
}

// lead is how long before the first start the pace is made, for the workers to be
// there in time.
const lead = 2 * time.Millisecond

// newPace makes the pace of n starts at the rate, in starts a second. nap sleeps for
// short times.
func newPace(n int, rate float64, nap func(time.Duration)) *pace {
	p := &pace{
		turn:  make(chan struct{}, 1),
		start: tier.Now().Add(lead),
		gap:   float64(time.Second) / rate,
		n:     n,
		nap:   nap,
	}
	p.turn <- struct{}{}
	return p
}

// next waits for the next start and returns its number and when it was meant to be.
// It returns false when there are no more or the context has ended.
func (p *pace) next(ctx context.Context) (i int, due tier.Instant, ok bool) {
	alone := p.idle.Add(1) == 1 && int(p.busy.Load()) == p.workers-1 // else others have yet to come
	defer p.idle.Add(-1)
	select {
	case <-p.turn:
	case <-ctx.Done():
		return 0, 0, false
	}
	defer func() { p.turn <- struct{}{} }()
	i = p.taken
	if i >= p.n {
		return 0, 0, false
	}
	due = p.due(i)
	if late := tier.Now().Sub(due); alone && late > 0 {
		p.heldUp++
		p.heldFor = max(p.heldFor, late)
	}
	if !p.await(ctx, due) {
		return 0, 0, false
	}
	p.taken++
	return i, due, true
}

// due returns when the i-th start is meant to be.
func (p *pace) due(i int) tier.Instant {
	if p.at != nil {
		return p.start.Add(p.at[i] - p.from)
	}
	return p.start.Add(time.Duration(float64(i-i%max(p.batch, 1)) * p.gap))
}

// coarse is what a timer of the runtime may be late by.
const coarse = 3 * time.Millisecond

// await waits until the instant, or returns false when the context ends.
func (p *pace) await(ctx context.Context, until tier.Instant) bool {
	if wait := until.Sub(tier.Now()); wait > 2*coarse {
		timer := time.NewTimer(wait - coarse)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return false
	}
	if wait := until.Sub(tier.Now()); wait > 0 {
		p.nap(wait)
	}
	return true
}

// openLoop reads at the pace with so many workers, and returns when all reads are
// done, or soon after the context has ended.
func openLoop(ctx context.Context, p *pace, workers int, read func(i int, due tier.Instant)) {
	p.workers = workers
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for {
				i, due, ok := p.next(ctx)
				if !ok {
					return
				}
				p.busy.Add(1)
				read(i, due)
				p.busy.Add(-1)
			}
		})
	}
	working.Wait()
}
