package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// Case is one published experiment on one key that nobody holds at its beginning.
type Case struct {
	// Name is for tables and programs, Does for people.
	Name, Does string
	// Published is how many calls of the origin it was published with, PublishedFailed
	// how many failed requests. Below zero: not told.
	Published, PublishedFailed int

	strategy Strategy
	origin   OriginOptions
	failing  int // how many of the first queries fail
	readers  int
	length   time.Duration // each reader reads again and again for so long; zero: once
	pause    time.Duration // mean time from a reader's answer to its next read
}

// CaseOutcome is what a case did.
type CaseOutcome struct {
	Case   Case
	Reads  Reads
	Origin OriginCounts
	// Wall is how long it took until all readers had their last answer.
	Wall time.Duration
}

const (
	caseLatency = 200 * time.Millisecond
	caseTTL     = time.Second
)

// Cases returns the published experiments: an origin of 200 ms, TTLs of a second.
// pause is the mean time from a reader's answer to its next read, which what was
// published does not tell; each is drawn from half to one and a half of it.
func Cases(pause time.Duration) []Case {
	life := policy.Lifetime{TTL: caseTTL}
	swr := life
	swr.StaleWhileRevalidate = caseTTL
	soft := policy.Lifetime{TTL: caseTTL / 2, StaleWhileRevalidate: caseTTL / 2}
	absent := life
	absent.Absent = caseTTL / 2
	free := OriginOptions{Latency: caseLatency}
	limited := OriginOptions{Latency: caseLatency, Capacity: 20}
	none := OriginOptions{Latency: caseLatency, Absent: true}
	const long = 1500 * time.Millisecond

	cases := []Case{
		{
			Name: "no-protection", Does: "50 misses at once", Published: 50,
			strategy: Unprotected("", life, policy.Fixed{}), origin: free, readers: 50,
		},
		{
			Name: "one-load", Does: "the same, one load at a time", Published: 1,
			strategy: Cached("", life, policy.Fixed{}), origin: free, readers: 50,
		},
		{
			Name: "lock-only", Does: "20 readers for 1.5 s, TTL 1 s, one load at a time", Published: 2,
			strategy: Cached("", life, policy.Fixed{}), origin: free, readers: 20, length: long,
		},
		{
			Name: "early-without-lock", Does: "the same, early expiry (XFetch), each reader alone", Published: 28,
			strategy: Unprotected("", life, policy.XFetch{}), origin: free, readers: 20, length: long,
		},
		{
			Name: "early-with-lock", Does: "the same, early expiry, one load at a time", Published: 4,
			strategy: Cached("", life, policy.XFetch{}), origin: free, readers: 20, length: long,
		},
		{
			Name: "swr", Does: "the same, stale for 1 s after its 1 s", Published: 3,
			strategy: Cached("", swr, policy.StaleWhileRevalidate{}), origin: free, readers: 20, length: long,
		},
		{
			Name: "swr-soft", Does: "the same, stale for the latter half of its 1 s", Published: 3,
			strategy: Cached("", soft, policy.StaleWhileRevalidate{}), origin: free, readers: 20, length: long,
		},
		{
			Name: "absent", Does: "20 readers for 1.5 s of a key that is absent, kept for 0.5 s", Published: -1,
			strategy: Cached("", absent, policy.Fixed{}), origin: none, readers: 20, length: long,
		},
		{
			Name: "burst-naive", Does: "200 misses at once, capacity 20", Published: 200, PublishedFailed: 180,
			strategy: Unprotected("", life, policy.Fixed{}), origin: limited, readers: 200,
		},
		{
			Name: "burst-one-load", Does: "the same, one load at a time", Published: 1,
			strategy: Cached("", life, policy.Fixed{}), origin: limited, readers: 200,
		},
		{
			Name: "burst-failing", Does: "20 misses at once while the origin fails, one load at a time", Published: 20, PublishedFailed: 20,
			strategy: Cached("", life, policy.Fixed{}), origin: limited, readers: 20, failing: 20,
		},
	}
	for i := range cases {
		cases[i].pause = pause
	}
	return cases
}

// Run runs the case.
func (c Case) Run(ctx context.Context, seed uint64) (o CaseOutcome, err error) {
	options := c.origin
	options.Seed = seed
	origin := NewOrigin(options)
	origin.FailNext(c.failing)
	r, err := c.strategy.open(origin, seed)
	if err != nil {
		return CaseOutcome{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer cancel()
		err = errors.Join(err, r.close(ctx))
	}()
	t := tally{slowAbove: c.origin.Latency / 2}
	start := tier.Now()
	var reading sync.WaitGroup
	for i := range c.readers {
		rnd := newRand(seed+uint64(i), forArrivals)
		reading.Go(func() { c.reads(ctx, &t, r, start.Add(c.length), rnd) })
	}
	reading.Wait()
	return CaseOutcome{Case: c, Reads: t.sum(), Origin: origin.Counts(), Wall: tier.Now().Sub(start)}, ctx.Err()
}

// reads is one reader.
func (c Case) reads(ctx context.Context, t *tally, r reader, end tier.Instant, rnd *rand.Rand) {
	for {
		t.read(ctx, r)
		next := tier.Now().Add(time.Duration((0.5 + rnd.Float64()) * float64(c.pause)))
		if next >= end || !until(ctx, next) {
			return
		}
	}
}
