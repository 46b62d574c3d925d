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
	// Failed are those of them that were answered with an error, where the origin fails.
	Failed int `json:"failed,omitempty"`
	// Writes and Deletes are not among the requests.
	Writes  int `json:"writes,omitempty"`
	Deletes int `json:"deletes,omitempty"`
	// Hits are the reads that a tier answered, fresh or stale, by its name.
	Hits map[string]int `json:"hits"`
	// Misses are the reads that had to wait for the origin, by a load of their own
	// or of another read.
	Misses     int     `json:"misses"`
	HitRatio   float64 `json:"hit_ratio"`
	Throughput float64 `json:"throughput_per_second"` // closed loop
	// Goroutines are throughputs of further closed loops.
	Goroutines []throughput `json:"goroutines,omitempty"`
	Latency    percentiles  `json:"latency_seconds"`
	// LatencyOver is the same as far as there are enough reads to tell.
	LatencyOver []percentile `json:"latency_distribution"`
	// WriteLatency and DeleteLatency are those of writes and deletes; nil where there were
	// none.
	WriteLatency  *percentiles `json:"write_latency_seconds,omitempty"`
	WriteOver     []percentile `json:"write_latency_distribution,omitempty"`
	DeleteLatency *percentiles `json:"delete_latency_seconds,omitempty"`
	DeleteOver    []percentile `json:"delete_latency_distribution,omitempty"`
	// OriginCalls are the loads begun, OriginPeak the most that ran at once.
	OriginCalls int64 `json:"origin_calls"`
	OriginPeak  int64 `json:"origin_peak"`
	// OriginOver are the loads begun in each of so many equal parts of the open loop.
	OriginOver []int64 `json:"origin_calls_over"`
	// Slow are the reads that took longer than the threshold.
	Slow int `json:"slow"`
	// HeldUp are the operations that were due while all workers were under way with others,
	// and had to wait for one of them.
	HeldUp int `json:"held_up,omitempty"`
	// Oldest is the greatest age of a value when a read returned it, counted from
	// when its load began.
	Oldest float64 `json:"oldest_seconds"`
	// Stale are the reads that were answered with a stale value, and Staleness is how far
	// past fresh those were. Of documents, whose lives vary by their jitter, it is how old.
	Stale     int          `json:"stale"`
	Staleness []percentile `json:"staleness_distribution"`
	// HeapPerEntry is what one entry takes in all in-memory tiers together; -1 where
	// there are none.
	HeapPerEntry float64 `json:"heap_bytes_per_entry"`

	// notes say what a reader of the row must know beside it.
	notes []string
	// stalest has all of Staleness.
	stalest *latency
}

// throughput is what a closed loop of so many goroutines did.
type throughput struct {
	Goroutines int     `json:"goroutines"`
	PerSecond  float64 `json:"throughput_per_second"`
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
	o := s.newOrigin()
	defer o.close()
	o.countOver(seconds(s.Seconds))
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
	warm, n := s.reads(s.WarmupSeconds), s.reads(s.Seconds)
	if w.due != nil {
		warm, n = w.warm, len(w.due)-w.warm
	}
	open := func(first, n int) *tally {
		t := newTally(s.Slow)
		t.mayFail = o.mayFail()
		if c.named.Cache == "" {
			t.fresh = s.TTL
		}
		p := newPace(n, s.Rate, nap)
		p.batch = w.batch
		if w.due != nil {
			p.at = w.due[first : first+n]
		}
		if first > 0 {
			p.from = w.warmup
		}
		openLoop(ctx, p, s.Concurrency, func(i int, due tier.Instant) { t.do(ctx, cache, o, w, first+i, due) })
		t.heldUp, t.heldFor = p.heldUp, p.heldFor
		return t
	}
	warmup := open(0, warm)
	o.mark()
	t := open(warm, n)
	r.OriginCalls, r.OriginPeak = o.calls.Load(), o.peak.Load()
	r.OriginOver = o.callsOver()
	r.noteShed(cache.Stats())
	t.fill(&r)
	if err := errors.Join(context.Cause(ctx), warmup.err, t.err); err != nil {
		return r, err
	}

	r.Throughput, err = closedLoop(ctx, cache, o, w, s, s.Concurrency)
	for _, n := range s.Goroutines {
		if err != nil {
			break
		}
		more := throughput{Goroutines: n}
		more.PerSecond, err = closedLoop(ctx, cache, o, w, s, n)
		r.Goroutines = append(r.Goroutines, more)
	}
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
	mayFail   bool          // reads that fail are counted, and end nothing
	fresh     time.Duration // how long all values are; zero: it is not known

	mu      sync.Mutex
	latency *latency
	written *latency
	deleted *latency
	stale   *latency // how long past fresh stale answers were
	hits    map[string]int
	misses  int
	slow    int
	behind  int // reads that began so late that this alone made them slow
	oldest  time.Duration
	failed  int
	err     error // the first

	heldUp  int           // operations that found no worker when they were due
	heldFor time.Duration // the longest of their waits
}

func newTally(slowAbove time.Duration) *tally {
	return &tally{
		slowAbove: slowAbove, hits: make(map[string]int),
		latency: newLatency(), written: newLatency(), deleted: newLatency(), stale: newLatency(),
	}
}

// do does the i-th operation of the workload and adds it up.
func (t *tally) do(ctx context.Context, cache *coordinator.Cache[string, []byte], o *origin, w *workload, i int, due tier.Instant) {
	_, key := w.key(i)
	op := w.op(i)
	if op == opRead {
		t.read(ctx, cache, key, due)
		return
	}
	err := change(ctx, cache, o, op, key)
	took := tier.Now().Sub(due)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
		if t.err == nil && ctx.Err() == nil {
			t.err = err
		}
	case op == opWrite:
		t.written.add(took)
	default:
		t.deleted.add(took)
	}
}

// change writes or deletes the key. What a tier could not be told is in the cache's
// statistics, and tried again: the rest of it was done.
func change(ctx context.Context, cache *coordinator.Cache[string, []byte], o *origin, op operation, key string) (err error) {
	if op == opDelete {
		err = cache.Delete(ctx, key)
	} else {
		err = cache.Set(ctx, key, o.value(key, tier.Now()))
	}
	if errors.As(err, new(*coordinator.WriteError)) {
		return nil
	}
	return err
}

// read does one read and adds it up.
func (t *tally) read(ctx context.Context, cache *coordinator.Cache[string, []byte], key string, due tier.Instant) {
	late := tier.Now().Sub(due)
	result, err := cache.Lookup(ctx, key)
	took := tier.Now().Sub(due)
	var old time.Duration
	var wrong error
	if err == nil && result.State != coordinator.Absent {
		old, wrong = age(key, result.Value)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case wrong != nil:
		err = wrong
	case err != nil && t.mayFail && ctx.Err() == nil:
		t.failed++
		t.add(took, late, "", 0)
		return
	}
	if err != nil {
		if t.err == nil && ctx.Err() == nil {
			t.err = err
		}
		return
	}
	t.add(took, late, result.Tier, old)
	if result.State == coordinator.Stale {
		t.stale.add(result.Age - t.fresh)
	}
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
	r.Failed, r.Writes, r.Deletes = t.failed, t.written.count(), t.deleted.count()
	r.Requests += t.misses
	r.HitRatio = ratio(hits, r.Requests)
	r.Latency, r.LatencyOver = t.latency.percentiles(), t.latency.distribution()
	if r.Writes > 0 {
		p := t.written.percentiles()
		r.WriteLatency, r.WriteOver = &p, t.written.distribution()
	}
	if r.Deletes > 0 {
		p := t.deleted.percentiles()
		r.DeleteLatency, r.DeleteOver = &p, t.deleted.distribution()
	}
	r.stalest = t.stale
	r.Stale, r.Staleness = t.stale.count(), t.stale.distribution()
	r.Slow = t.slow
	r.Oldest = t.oldest.Seconds()
	if r.HeldUp = t.heldUp; r.HeldUp > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%d of %d operations began up to %v late, as all workers were under way: raise --concurrency",
			t.heldUp, r.Requests+r.Writes+r.Deletes, t.heldFor.Round(time.Microsecond)))
	}
	if t.behind > r.Requests/100 {
		r.notes = append(r.notes, fmt.Sprintf("%.1f %% of the reads began late, and so are slow: lower the rate, raise --concurrency, or use an idle machine",
			100*ratio(t.behind, r.Requests)))
	}
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// closedLoop returns how many reads (and writes) a second so many workers do when each
// begins its next as soon as it has its last.
func closedLoop(ctx context.Context, cache *coordinator.Cache[string, []byte], o *origin, w *workload, s *settings, workers int) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stop atomic.Bool // read by all at each read, written once
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	end := time.AfterFunc(seconds(s.ClosedSeconds), func() { stop.Store(true) })
	defer end.Stop()

	done := make([]int, workers)
	errs := make([]error, workers)
	var working sync.WaitGroup
	began := tier.Now()
	mayFail := o.mayFail()
	for worker := range workers {
		working.Go(func() {
			at := worker * (len(w.sequence) / workers)
			n := 0
			for !stop.Load() {
				_, key := w.key(at + n)
				var err error
				if op := w.op(at + n); op == opRead {
					_, err = cache.Get(ctx, key)
				} else {
					err = change(ctx, cache, o, op, key)
				}
				if err != nil && (!mayFail || ctx.Err() != nil) {
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
