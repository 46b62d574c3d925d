package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/curve"
	"github.com/terracecache/terrace/bench/internal/replay"
)

const (
	// entryOverhead is what an entry takes beside its value: a key of 16 bytes, and what
	// stores need, of which that of lru need the most (docs/performance.md).
	entryOverhead = 180
	// plainEntry is the value's size where nothing says it.
	plainEntry = 1024
	// mostSizes is how often the budget is halved.
	mostSizes = 7
	// mostSpread is the estimated error of a sample above which a greater is taken, if it has
	// fewer than enoughKeys.
	mostSpread = 0.01
	enoughKeys = 20_000
)

// run fills in the advice. What was done stays in it when it fails.
func (a *advice) run(ctx context.Context, s *adviseSettings, t *traceSettings, inputs []*traceInput, stderr io.Writer) error {
	if len(inputs) == 0 {
		inputs = []*traceInput{{name: s.label()}}
	}
	p := newTraceProgress(stderr, inputs)
	defer p.finish()
	p.begin(inputs[0])
	var rec *capture.Trace
	var about *traceOfRows
	var broken error
	if s.file == "" {
		rec, about, broken = s.describe(ctx, p)
	} else {
		rec, about, broken = inputs[0].record(ctx, t, p, stderr)
	}
	if rec != nil {
		defer rec.Close()
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	if about != nil {
		a.Trace = *about
	}
	switch {
	case rec != nil:
	case errors.As(broken, new(notTrace)):
		return broken // stdin, of which nothing can be told before
	default:
		return failure{broken}
	}
	err := a.advise(ctx, s, rec, p)
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err = errors.Join(broken, err); err != nil {
		return failure{err}
	}
	return nil
}

// advise estimates all alternatives and chooses.
func (a *advice) advise(ctx context.Context, s *adviseSettings, rec *capture.Trace, p *traceProgress) error {
	if err := a.size(ctx, s, rec); err != nil {
		return err
	}
	sizes, work := a.plan(s)
	m, err := a.reduce(ctx, s, rec, sizes, work)
	if err != nil {
		return err
	}
	defer m.Close()
	a.alternatives(s, sizes)
	jobs := a.jobs(s, m, sizes)
	err = runJobs(ctx, jobs, p)
	a.Rows = slices.DeleteFunc(a.Rows, func(r *curveRow) bool { return !r.done })
	a.Alternatives = slices.DeleteFunc(a.Alternatives, func(c *alternative) bool { return !c.done })
	for _, c := range a.Alternatives {
		c.figure(s, a)
	}
	var best *alternative
	if err == nil {
		best, err = a.best(ctx, s, m, work, p)
	}
	a.Sample.Replayed += m.Work()
	a.Sample.Full = a.Trace.Requests * int64(len(a.Rows)+a.multiple())
	a.Sample.tell(s, a.Trace.Requests)
	if err != nil {
		return err
	}
	a.Advice = newRecommendation(s, a, best)
	return a.verify(ctx, s, rec, p)
}

const (
	// leastReplays and mostReplays are how often what differs by seed or by chance is replayed, at
	// least and at most, before it is advised, of a trace that is taken as a whole; in between as often as
	// replaysWorth requests allow.
	leastReplays = 4
	mostReplays  = 100
	replaysWorth = 750_000
	// mostByChance is of how many alternatives that is done, more where each costs little, as many as
	// chanceWorth requests allow.
	mostByChance = 4
	chanceWorth  = 3_000_000
	// replaysOfPart is how often that is done with a part of the keys, which is large: so replays of
	// it are close to each other.
	replaysOfPart = 2
	// steadySpread is how far apart replays of a thing may be for it to be promised, whatever the
	// seed: the middle is then well within 2 points of each.
	steadySpread = 0.035
	// steadyWorth is how many hits may be given up for a promise.
	steadyWorth = 0.05
)

// chances returns how often what differs is replayed before it is advised, and of how many
// alternatives that is done.
func (w *work) chances(m *curve.Mini) (replays, most int) {
	if m.Sampled() {
		return replaysOfPart, w.chance / replaysOfPart
	}
	n := max(1, m.Requests())
	replays = int(min(mostReplays, max(leastReplays, replaysWorth/n)))
	return replays, max(mostByChance, int(chanceWorth/(n*int64(replays))))
}

// best chooses. One replay of an eviction that draws by chance may be a lucky one, and of
// many alternatives the lucky are chosen: so each such is replayed again, with other seeds, before
// it is advised, and counts as the middle of what those replays have, unless its own is exact. If
// they are far apart nothing can be promised of a process, whose seeds are by chance, and another
// is chosen that is steadier, if there is a good one. When there have been enough replays, it is
// one of those that are known well.
func (a *advice) best(ctx context.Context, s *adviseSettings, m *curve.Mini, w *work, p *traceProgress) (*alternative, error) {
	replays, most := w.chances(m)
	best := a.chooseSteady(s, a.Alternatives)
	for ; most > 0 && !best.isCertain(); most-- {
		estimates := make([]curve.Estimate, replays, replays+1)
		var jobs []*traceJob
		for i := range estimates {
			jobs = append(jobs, jobOf(m, best.name(), best.Tiers[0].Size, func(ctx context.Context, tick func(int64)) (err error) {
				estimates[i], err = m.Replay(ctx, best.replayed(), s.Seed+1+uint64(i), tick)
				return err
			}))
		}
		if err := runJobs(ctx, jobs, p); err != nil {
			return nil, err
		}
		best.settle(append(estimates, best.estimate()), a.exact(best))
		best.figure(s, a)
		for _, r := range a.Rows {
			if t := best.Tiers[0]; len(best.Tiers) == 1 && r.Policy == t.Policy && r.Size == t.Size {
				r.HitRatio = best.HitRatio
			}
		}
		best = a.chooseSteady(s, a.Alternatives)
	}
	if best.isCertain() {
		return best, nil
	}
	if known := slices.DeleteFunc(slices.Clone(a.Alternatives), func(c *alternative) bool { return !c.isCertain() }); len(known) > 0 {
		best = a.chooseSteady(s, known)
	}
	return best, nil
}

// chooseSteady returns the best of those whose replays are not far apart, or, of what is exact
// with one seed at least, or of all, where the others would be far worse.
func (a *advice) chooseSteady(s *adviseSettings, all []*alternative) *alternative {
	best := s.choose(all)
	if !best.unsteady() {
		return best
	}
	least := best.HitRatio - steadyWorth
	if a.exact(best) {
		least = max(least, *best.Least) // what has fewer hits than it with any seed is worse
	}
	if other := s.chooseOf(all, least, func(c *alternative) bool { return !c.unsteady() }); other != nil {
		return other
	}
	if a.exact(best) {
		return best
	}
	if other := s.chooseOf(all, least, a.exact); other != nil {
		return other
	}
	return best
}

// chooseOf returns the best of some, if it has as many hits as that, or nil.
func (s *adviseSettings) chooseOf(all []*alternative, hits float64, wanted func(*alternative) bool) *alternative {
	some := slices.DeleteFunc(slices.Clone(all), func(c *alternative) bool { return !wanted(c) })
	if len(some) == 0 {
		return nil
	}
	if best := s.choose(some); best.HitRatio >= hits {
		return best
	}
	return nil
}

// exact reports whether a replay with the same seed has what is said of the alternative, to the
// request.
func (a *advice) exact(c *alternative) bool { return !a.Sample.Sampled && !c.byChance() }

// jobOf returns a replay of the part, which tells its progress in requests of the whole.
func jobOf(m *curve.Mini, policy string, size int64, run func(ctx context.Context, tick func(int64)) error) *traceJob {
	job := &traceJob{row: traceRow{Policy: policy, Size: size, Unit: "entries"}}
	job.run = func(ctx context.Context, _ *traceRow, tick func(int64)) error {
		return run(ctx, func(n int64) { tick(n * m.Whole() / max(1, m.Requests())) })
	}
	return job
}

// size finds what an entry takes, and how many there may be.
func (a *advice) size(ctx context.Context, s *adviseSettings, rec *capture.Trace) error {
	e := &a.Environment
	e.EntryBytes = s.entry
	switch {
	case s.entry > 0:
	case rec.Fields().Sizes:
		sum, n := 0.0, 0.0
		err := rec.Each(ctx, func(b *capture.Batch) error {
			for i, next := range b.Next {
				if next == capture.Never {
					sum += float64(b.Requests[i].Size)
					n++
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		e.EntryBytes = max(1, int64(sum/max(1, n)))
		a.Trace.note("values are taken for %d bytes each, the mean of the trace's objects", e.EntryBytes)
	default:
		e.EntryBytes = plainEntry
		a.Trace.note("the trace has no sizes of objects: values are taken for %s each, see --entry-bytes", bytesText(plainEntry))
	}
	e.EntryBytes += entryOverhead
	e.Budget = s.memory / e.EntryBytes
	if e.Budget < 1 {
		return fmt.Errorf("--memory %s: there is no room for an entry of %d bytes", s.Memory, e.EntryBytes)
	}
	e.RemoteEntries = a.Trace.Keys
	if s.remoteMemory > 0 {
		e.RemoteEntries = s.remoteMemory / e.EntryBytes
	}
	if e.RemoteEntries < 1 {
		return fmt.Errorf("--remote-memory %s: there is no room for an entry of %d bytes", s.RemoteMemory, e.EntryBytes)
	}
	return nil
}

// work is what is replayed, told beforehand.
type work struct {
	most   float64 // the share of the requests that a part may have
	chance int     // how often the part may be replayed again, of what draws by chance
}

// plan returns the sizes of the curve, and how great a part of the trace can be replayed at
// all of them for a tenth of the work of full replays. There are fewer sizes where the
// smallest store would have too few entries by it.
func (a *advice) plan(s *adviseSettings) ([]int64, *work) {
	// A quarter more, as the parts of a store do not fill alike.
	top := min(a.Environment.Budget, a.Trace.Keys+a.Trace.Keys/4+1)
	if top < a.Environment.Budget {
		a.Trace.note("%s has room for %d entries, more than the %d keys need", s.Memory, a.Environment.Budget, a.Trace.Keys)
	}
	for n := mostSizes; ; n-- {
		sizes := halvings(top, n)
		w := a.workOf(s, sizes)
		enough := int64(math.Ceil(curve.LeastEntries / w.most))
		switch {
		case a.Trace.Requests <= curve.Few: // it is taken as a whole
			enough = 1
		case a.Trace.Keys < 10*enough: // no part of so few is fine
			enough = max(1, min(enough, top/4))
		}
		if len(sizes) == 1 || sizes[0] >= enough {
			return sizes, w
		}
	}
}

// halvings returns the size, its half, and so on, the smallest first, n of them or as many as
// there are.
func halvings(top int64, n int) []int64 {
	sizes := []int64{top}
	for size := top / 2; size > 0 && len(sizes) < n; size /= 2 {
		sizes = append(sizes, size)
	}
	slices.Reverse(sizes)
	return sizes
}

// workOf returns the work for the rows and alternatives of the sizes.
func (a *advice) workOf(s *adviseSettings, sizes []int64) *work {
	planned := &advice{Environment: a.Environment}
	planned.alternatives(s, sizes)
	full := len(planned.Rows) + planned.multiple()
	passes := 1 + len(planned.jobs(s, nil, sizes)) // the first is that of the error
	w := new(work)
	if slices.ContainsFunc(planned.Alternatives, (*alternative).bySeed) {
		// Of few rows no part of the work is left for it.
		w.chance = min(mostByChance, full/replaysOfPart/6) * replaysOfPart
	}
	w.most = min(curve.Tenth, curve.Tenth*float64(full)/float64(passes+w.chance))
	return w
}

// reduce takes a part of the keys, and a greater one if the first is of few, and too small for
// this trace.
func (a *advice) reduce(ctx context.Context, s *adviseSettings, rec *capture.Trace, sizes []int64, w *work) (*curve.Mini, error) {
	o := curve.Options{Rate: s.Sample, Most: w.most, Smallest: sizes[0], Seed: s.Seed}
	for {
		m, err := curve.Reduce(ctx, rec, o)
		if err != nil {
			return nil, err
		}
		spread, err := m.Spread(ctx, sizes)
		if err != nil {
			m.Close()
			return nil, err
		}
		if spread <= mostSpread || s.Sample > 0 || m.Keys() >= enoughKeys {
			a.Sample.Sampled, a.Sample.Share, a.Sample.Spread = m.Sampled(), m.Share, spread
			a.Sample.Keys, a.Sample.Requests = m.Keys(), m.Requests()
			return m, nil
		}
		a.Sample.Replayed += m.Work()
		a.Sample.greater = true
		m.Close()
		// The error goes with the root of the number of keys.
		o.Rate = m.Share * min(4, max(1.5, 1.2*(spread/mostSpread)*(spread/mostSpread)))
		if o.Rate > 0.5 {
			o.Rate = 1
		}
	}
}

// multiple returns how many alternatives are not rows of the curve.
func (a *advice) multiple() (n int) {
	for _, c := range a.Alternatives {
		if len(c.Tiers) > 1 || c.Tiers[0].remote {
			n++
		}
	}
	return n
}

// alternatives adds the rows of the curve, and what is to be compared.
func (a *advice) alternatives(s *adviseSettings, sizes []int64) {
	sampled := a.Sample.Sampled
	for _, size := range sizes {
		for _, p := range append([]string{optimum}, s.Policies...) {
			a.Rows = append(a.Rows, &curveRow{Policy: p, Size: size, Sampled: sampled})
			if p != optimum {
				a.Alternatives = append(a.Alternatives, &alternative{Tiers: []adviceTier{{Name: "l1", Policy: p, Size: size}}})
			}
		}
	}
	top := sizes[len(sizes)-1]
	for _, p := range s.Policies {
		if upper := top / 10; upper > 0 && p != "lru" {
			a.Alternatives = append(a.Alternatives, &alternative{Tiers: []adviceTier{
				{Name: "l1", Policy: "lru", Size: upper}, {Name: "l2", Policy: p, Size: top - upper},
			}})
		}
	}
	if !s.hasRemote() {
		return
	}
	remote := adviceTier{Name: "l3", Policy: "lru", Size: a.Environment.RemoteEntries, remote: true}
	a.Alternatives = append(a.Alternatives, &alternative{Tiers: []adviceTier{remote}})
	for i := len(sizes) - 1; i >= 0; i -= 2 {
		for _, p := range s.Policies {
			a.Alternatives = append(a.Alternatives, &alternative{Tiers: []adviceTier{{Name: "l1", Policy: p, Size: sizes[i]}, remote}})
		}
	}
}

// jobs returns what estimates the rows and alternatives. The LRU's are all of one pass,
// and alternatives of one tier are rows.
func (a *advice) jobs(s *adviseSettings, m *curve.Mini, sizes []int64) []*traceJob {
	var jobs []*traceJob
	add := func(policy string, size int64, run func(ctx context.Context, tick func(int64)) error) {
		jobs = append(jobs, jobOf(m, policy, size, run))
	}
	single := make(map[curveRow]*alternative)
	for _, c := range a.Alternatives {
		if len(c.Tiers) == 1 && !c.Tiers[0].remote {
			single[curveRow{Policy: c.Tiers[0].Policy, Size: c.Tiers[0].Size}] = c
			continue
		}
		add(c.name(), c.Tiers[0].Size, func(ctx context.Context, tick func(int64)) error {
			e, err := m.Replay(ctx, c.replayed(), s.Seed, tick)
			c.take(e, err)
			return err
		})
	}
	finish := func(r *curveRow, e curve.Estimate, err error) {
		r.HitRatio, r.done = e.HitRatio, err == nil
		if c := single[curveRow{Policy: r.Policy, Size: r.Size}]; c != nil {
			c.take(e, err)
		}
	}
	if slices.Contains(s.Policies, "lru") {
		add("lru", sizes[len(sizes)-1], func(ctx context.Context, tick func(int64)) error {
			lru, err := m.LRU(ctx, tick)
			for _, r := range a.Rows {
				if r.Policy == "lru" && err == nil {
					finish(r, lru(r.Size), nil)
				}
			}
			return err
		})
	}
	for _, r := range a.Rows {
		switch r.Policy {
		case "lru":
		case optimum:
			add(optimum, r.Size, func(ctx context.Context, tick func(int64)) error {
				e, err := m.Bound(ctx, r.Size, tick)
				finish(r, e, err)
				return err
			})
		default:
			add(r.Policy, r.Size, func(ctx context.Context, tick func(int64)) error {
				e, err := m.Replay(ctx, []replay.Tier{{Name: "l1", Policy: r.Policy, Size: r.Size}}, s.Seed, tick)
				finish(r, e, err)
				return err
			})
		}
	}
	return jobs
}

// verify replays in full what is asked for.
func (a *advice) verify(ctx context.Context, s *adviseSettings, rec *capture.Trace, p *traceProgress) error {
	if !s.Verify && !s.VerifyCurve {
		return nil
	}
	var jobs []*traceJob
	add := func(policy string, tiers []replay.Tier, full **float64) {
		job := &traceJob{row: traceRow{Policy: policy, Size: tiers[0].Size, Unit: "entries"}}
		job.run = func(ctx context.Context, _ *traceRow, tick func(int64)) error {
			result, err := replay.Run(ctx, rec, tiers, s.Seed, tick)
			if err == nil {
				*full = share(float64(result.Hits), float64(result.Requests))
			}
			return err
		}
		jobs = append(jobs, job)
	}
	add(a.Advice.name(), a.Advice.replayed(), &a.Advice.FullHitRatio)
	if s.VerifyCurve {
		for _, r := range a.Rows {
			if r.Policy != optimum {
				add(r.Policy, []replay.Tier{{Name: "l1", Policy: r.Policy, Size: r.Size}}, &r.FullHitRatio)
			}
		}
	}
	err := runJobs(ctx, jobs, p)
	a.Sample.compare(a.Rows)
	return err
}
