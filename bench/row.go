package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/tier"
)

// row is what was measured of one combination under one policy, or of one cache of a
// document. All of it but the throughput is of the open loop, after its warm-up.
type row struct {
	// File and Cache name a document's cache, and Tiers tell what it runs; without a
	// document they are not there.
	File  string     `json:"file,omitempty"`
	Cache string     `json:"cache,omitempty"`
	Tiers []tierName `json:"tiers,omitempty"`

	Combination string `json:"combination"`
	Policy      string `json:"policy"`
	Requests    int    `json:"requests"`
	// Hits are the reads that a tier answered, fresh or stale, by its name.
	Hits map[string]int `json:"hits"`
	// Misses are the reads that had to wait for the origin, by a load of their own
	// or of another read.
	Misses     int         `json:"misses"`
	HitRatio   float64     `json:"hit_ratio"`
	Throughput float64     `json:"throughput_per_second"` // closed loop
	Latency    percentiles `json:"latency_seconds"`
	// OriginCalls are the loads begun, OriginPeak the most that ran at once.
	OriginCalls int64 `json:"origin_calls"`
	OriginPeak  int64 `json:"origin_peak"`
	// Slow are the reads that took longer than the threshold.
	Slow int `json:"slow"`
	// Oldest is the greatest age of a value when a read returned it, counted from
	// when its load began.
	Oldest float64 `json:"oldest_seconds"`
	// HeapPerEntry is what one entry takes in all in-memory tiers together; -1 where
	// there are none.
	HeapPerEntry float64 `json:"heap_bytes_per_entry"`

	// notes say what a reader of the row must know beside it.
	notes []string
}

// tierName is what a cache tells of a tier; one that is not in memory names no eviction.
type tierName struct {
	Name     string `json:"name"`
	Eviction string `json:"eviction"`
}

// measure runs one row from empty tiers. The context's end makes it return the
// context's cause.
func measure(ctx context.Context, s *settings, w *workload, c *contender) (r row, err error) {
	r = c.named
	o := newOrigin(s.OriginLatency, s.ValueSize)
	cache, err := c.open(o)
	if err != nil {
		return r, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = cache.Close(closing) // whatever is left of it ends with the row
		if c.clear == nil {
			return
		}
		// When nothing writes any more.
		if clearErr := c.clear(ctx, w.keys); clearErr != nil && err == nil {
			r.notes = append(r.notes, fmt.Sprintf("its keys on the server could not be removed, and stay until they expire: %v", clearErr))
		}
	}()
	stats := cache.Stats()
	r.Hits = make(map[string]int)
	for _, t := range stats.Tiers {
		r.Hits[t.Name] = 0
	}
	if c.describe != nil {
		c.describe(&r, stats)
	}

	nap, release := newNap()
	defer release()
	warm := s.reads(s.WarmupSeconds)
	warmup := newTally(s.Slow)
	openLoop(ctx, newPace(warm, s.Rate, nap), s.Concurrency, func(i int, due tier.Instant) {
		_, key := w.key(i)
		warmup.read(ctx, cache, key, due)
	})
	o.mark()
	t := newTally(s.Slow)
	openLoop(ctx, newPace(s.reads(s.Seconds), s.Rate, nap), s.Concurrency, func(i int, due tier.Instant) {
		_, key := w.key(warm + i)
		t.read(ctx, cache, key, due)
	})
	r.OriginCalls, r.OriginPeak = o.calls.Load(), o.peak.Load()
	r.noteShed(cache.Stats())
	t.fill(&r)
	if err := errors.Join(context.Cause(ctx), warmup.err, t.err); err != nil {
		return r, err
	}

	r.Throughput, err = closedLoop(ctx, cache, w, s)
	if err := errors.Join(context.Cause(ctx), err); err != nil {
		return r, err
	}
	return r, r.noteFaults(ctx, c, cache.Stats())
}

// noteShed notes in the row if the cache had no room for many refreshes: swr and
// xfetch are judged by what they refresh ahead of readers. The closed loop, which
// asks for more than any, has not begun.
func (r *row) noteShed(stats coordinator.Stats) {
	if asked := stats.Refreshes + stats.RefreshesShed; stats.RefreshesShed > asked/100 {
		r.notes = append(r.notes, fmt.Sprintf("%d of %d refreshes were put off, as the cache's limit of refreshes at once was reached",
			stats.RefreshesShed, asked))
	}
}

// noteFaults notes in the row what went wrong beside the reads. It returns an error
// when the remote tier does not answer any more.
func (r *row) noteFaults(ctx context.Context, c *contender, stats coordinator.Stats) error {
	for _, t := range stats.Tiers {
		if t.Errors == 0 {
			continue
		}
		if c.remote != nil {
			if err := c.remote.answers(ctx); err != nil {
				return err
			}
		}
		r.notes = append(r.notes, fmt.Sprintf("%d calls of %s failed; its reads went on without it", t.Errors, t.Name))
	}
	return nil
}

// tally adds up the reads of an open loop.
type tally struct {
	slowAbove time.Duration

	mu      sync.Mutex
	latency *latency
	hits    map[string]int
	misses  int
	slow    int
	behind  int // reads that began so late that this alone made them slow
	oldest  time.Duration
	err     error // the first
}

func newTally(slowAbove time.Duration) *tally {
	return &tally{slowAbove: slowAbove, latency: newLatency(), hits: make(map[string]int)}
}

// read does one read and adds it up.
func (t *tally) read(ctx context.Context, cache *coordinator.Cache[string, []byte], key string, due tier.Instant) {
	late := tier.Now().Sub(due)
	result, err := cache.Lookup(ctx, key)
	took := tier.Now().Sub(due)
	var old time.Duration
	if err == nil {
		old, err = age(key, result.Value)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if t.err == nil && ctx.Err() == nil {
			t.err = err
		}
		return
	}
	t.add(took, late, result.Tier, old)
}

// add adds up a read that took so long from its intended start, the given part of
// it before it began, and was answered by the tier (the origin, where empty) with a
// value of the given age.
func (t *tally) add(took, late time.Duration, from string, old time.Duration) {
	t.latency.add(took)
	if from == "" {
		t.misses++
	} else {
		t.hits[from]++
	}
	if took > t.slowAbove {
		t.slow++
	}
	if late > t.slowAbove {
		t.behind++
	}
	t.oldest = max(t.oldest, old)
}

// fill puts the tally's figures into the row.
func (t *tally) fill(r *row) {
	for name, n := range t.hits {
		r.Hits[name] = n
		r.Requests += n
	}
	hits := r.Requests
	r.Misses = t.misses
	r.Requests += t.misses
	r.HitRatio = ratio(hits, r.Requests)
	r.Latency = t.latency.percentiles()
	r.Slow = t.slow
	r.Oldest = t.oldest.Seconds()
	if t.behind > r.Requests/100 {
		r.notes = append(r.notes, fmt.Sprintf("%.1f %% of the reads began late and are slow for that: lower --rate, raise --concurrency, or use an idle machine",
			100*ratio(t.behind, r.Requests)))
	}
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// closedLoop returns how many reads a second the workers do when each begins its
// next as soon as it has its last.
func closedLoop(ctx context.Context, cache *coordinator.Cache[string, []byte], w *workload, s *settings) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stop atomic.Bool // read by all at each read, written once
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	end := time.AfterFunc(seconds(s.ClosedSeconds), func() { stop.Store(true) })
	defer end.Stop()

	done := make([]int, s.Concurrency)
	errs := make([]error, s.Concurrency)
	var working sync.WaitGroup
	began := tier.Now()
	for worker := range s.Concurrency {
		working.Go(func() {
			at := worker * (len(w.sequence) / s.Concurrency)
			n := 0
			for !stop.Load() {
				_, key := w.key(at + n)
				if _, err := cache.Get(ctx, key); err != nil {
					errs[worker] = err
					cancel()
					break
				}
				n++
			}
			done[worker] = n
		})
	}
	working.Wait()
	took := tier.Now().Sub(began)
	total := 0
	for _, n := range done {
		total += n
	}
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil && !errors.Is(err, context.Canceled) })
	if i >= 0 {
		return 0, errs[i]
	}
	return float64(total) / took.Seconds(), nil
}
