package lab

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Origin is what caches stand in front of. A query takes its time; beyond the capacity
// a further one is refused; the next ones can be made to fail. It counts.
//
// All methods are safe for concurrent use.
type Origin struct {
	options OriginOptions

	mu      sync.Mutex
	rnd     *rand.Rand
	running int
	failing int // how many of the next queries fail
	counts  OriginCounts
}

// OriginOptions describe an origin.
type OriginOptions struct {
	// Latency is how long a query takes at least. It takes up to a hundredth longer, by
	// chance: were it exact, a request every hundredth of it would come at the very
	// instant of an answer, which in reality it never does.
	Latency time.Duration
	// Capacity is how many queries may run at once. Zero: any number.
	Capacity int
	// Absent: it has no value for any key.
	Absent bool
	// Seed is of what queries take above Latency.
	Seed uint64
}

// OriginCounts are what has been asked of an origin.
type OriginCounts struct {
	// Calls counts queries, Refused those of them that found its capacity reached, and
	// Failed those that were made to fail.
	Calls, Refused, Failed int
	// Peak is the most queries that ran at once.
	Peak int
	// Begun is when each query came.
	Begun []tier.Instant
}

// Answer is a value of an origin. Its age can be told, whichever way it took.
type Answer struct {
	// Asked is when the query for it began, Answered when it ended, on this process's
	// clock.
	Asked, Answered tier.Instant
}

// age returns how old the value is for a read that began and ended then: one that
// found it there has it as it was when the read came, however long the processor then
// took, and one that waited for it as it is at the end.
func (a Answer) age(began, ended tier.Instant) time.Duration {
	if a.Answered <= began {
		return began.Sub(a.Asked)
	}
	return ended.Sub(a.Asked)
}

// The errors of an origin.
var (
	ErrRefused = errors.New("origin: over capacity")
	ErrDown    = errors.New("origin: failed")
)

// NewOrigin makes an origin.
func NewOrigin(o OriginOptions) *Origin {
	return &Origin{options: o, rnd: newRand(o.Seed, forOrigin)}
}

// FailNext makes the next n queries fail, after their latency.
func (o *Origin) FailNext(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failing = n
}

// Query asks for a key's value. It is a loader for caches: [tier.ErrAbsent] says that
// there is none.
func (o *Origin) Query(ctx context.Context, _ string) (Answer, error) {
	began := tier.Now()
	takes, fails, err := o.enter(began)
	if err != nil {
		return Answer{}, err
	}
	defer o.leave()
	if !until(ctx, began.Add(takes)) {
		return Answer{}, ctx.Err()
	}
	switch {
	case fails:
		return Answer{}, ErrDown
	case o.options.Absent:
		return Answer{}, tier.ErrAbsent
	}
	return Answer{Asked: began, Answered: tier.Now()}, nil
}

// enter counts a query, and tells how long it takes and whether it then fails.
func (o *Origin) enter(now tier.Instant) (takes time.Duration, fails bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts.Calls++
	o.counts.Begun = append(o.counts.Begun, now)
	if o.options.Capacity > 0 && o.running >= o.options.Capacity {
		o.counts.Refused++
		return 0, false, ErrRefused
	}
	o.running++
	o.counts.Peak = max(o.counts.Peak, o.running)
	if fails = o.failing > 0; fails {
		o.failing--
		o.counts.Failed++
	}
	return o.options.Latency + time.Duration(o.rnd.Float64()*float64(o.options.Latency/100)), fails, nil
}

func (o *Origin) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running--
}

// Mark begins a new count. The peak is that of what runs now.
func (o *Origin) Mark() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts = OriginCounts{Peak: o.running}
}

// Counts returns the counts since the last Mark.
func (o *Origin) Counts() OriginCounts {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts
}

// until waits for the instant, or returns false when the context ends.
func until(ctx context.Context, at tier.Instant) bool {
	timer := time.NewTimer(at.Sub(tier.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
