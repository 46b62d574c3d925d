package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/optimal"
	"github.com/terracecache/terrace/bench/internal/replay"
	"github.com/terracecache/terrace/bench/internal/trace"
)

// run adds the rows of all traces to the report. What is wrong with one of them does not
// keep the others from being replayed.
func (r *traceReport) run(ctx context.Context, s *traceSettings, inputs []*traceInput, stderr io.Writer) error {
	p := newTraceProgress(stderr, inputs)
	defer p.finish()
	var wrong []error
	begun := false
	for _, in := range inputs {
		p.begin(in)
		err := r.replay(ctx, s, in, p, stderr)
		in.close()
		if ctx.Err() != nil {
			return errInterrupted
		}
		if err != nil {
			wrong = append(wrong, err)
			begun = begun || !errors.As(err, new(notTrace))
			continue
		}
		begun = true
	}
	if len(wrong) > 0 && !begun {
		return errors.Join(wrong...)
	}
	if n := len(r.Environment.Violations); n > 0 {
		wrong = append(wrong, fmt.Errorf("%d rows cannot be: %s", n, r.Environment.Violations[0]))
	}
	if len(wrong) > 0 {
		return failure{errors.Join(wrong...)}
	}
	return nil
}

// replay reads a trace and adds its rows.
func (r *traceReport) replay(ctx context.Context, s *traceSettings, in *traceInput, p *traceProgress, stderr io.Writer) error {
	rec, about, broken := in.record(ctx, s, p, stderr)
	if rec != nil {
		defer rec.Close()
	}
	if about != nil {
		r.Environment.Traces = append(r.Environment.Traces, *about)
	}
	if rec == nil {
		return broken
	}
	about = &r.Environment.Traces[len(r.Environment.Traces)-1]
	jobs := s.jobs(about, rec)
	for _, note := range about.Notes {
		fmt.Fprintf(stderr, "%s: %s\n", in.name, oneLine(note))
	}
	err := runJobs(ctx, jobs, p)
	bounds := make(map[traceBound]int64)
	for _, j := range jobs {
		if !j.done {
			continue
		}
		if j.row.Policy == optimum {
			bounds[j.row.bound()] = j.row.Hits
		}
	}
	for _, j := range jobs {
		if j.done {
			r.Rows = append(r.Rows, j.row)
			r.Environment.Violations = append(r.Environment.Violations, j.row.violations(bounds)...)
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", in.name, err)
	}
	return errors.Join(broken, err)
}

// record reads the trace into a recording, which is linked. Where all that is wrong is
// that the trace breaks off, what was read comes with the error; about comes as soon as
// the trace could be read at all.
func (in *traceInput) record(ctx context.Context, s *traceSettings, p *traceProgress, stderr io.Writer) (rec *capture.Trace, about *traceOfRows, broken error) {
	if in.size == 0 { // not a file, or nothing in it
		in.from = newInterruptible(ctx, in.from)
	}
	reader, err := in.open(s)
	if err != nil {
		return nil, nil, err
	}
	defer reader.Close()
	about = &traceOfRows{Trace: in.name, Format: string(reader.Format()), Compression: reader.Compression(), Notes: []string{}}
	faults := traceFaults{first: []string{}}
	tick := p.reading(reader)
	rec, broken = capture.Record(ctx, reader, "", faults.add, tick)
	if rec == nil {
		return nil, nil, fmt.Errorf("%s: %w", in.name, broken)
	}
	p.end()
	about.Malformed, about.FirstMalformed = faults.n, faults.first
	faults.tell(in.name, stderr)
	about.count(rec)
	if broken != nil {
		broken = fmt.Errorf("%s: after %d requests: %w", in.name, about.Requests, broken)
		about.Error = oneLine(broken.Error())
	}
	if about.Requests == 0 {
		rec.Close()
		if broken == nil {
			broken = fmt.Errorf("%s: %w", in.name, reader.NoRequests())
		}
		return nil, about, broken
	}
	if doubt := reader.Doubt(); doubt != "" {
		about.note("%s", doubt)
	}
	if err := rec.Link(ctx, p.linking(about.Requests)); err != nil {
		rec.Close()
		return nil, nil, errors.Join(broken, fmt.Errorf("%s: %w", in.name, err))
	}
	about.Keys = rec.Distinct()
	return rec, about, broken
}

// traceJob makes a row.
type traceJob struct {
	row  traceRow
	done bool
	// memory is what it takes, in bytes, rather more than less; zero: little, or others see to it.
	memory int64
	run    func(ctx context.Context, row *traceRow, tick func(int64)) error
}

// jobs returns what makes the rows of a trace.
func (s *traceSettings) jobs(about *traceOfRows, rec *capture.Trace) []*traceJob {
	var jobs []*traceJob
	fields := rec.Fields()
	bounded := make(map[traceBound]bool)
	add := func(policy string, size int64, bytes bool, memory int64, run func(context.Context, *traceRow, func(int64)) error) {
		row := traceRow{Trace: about.Trace, Policy: policy, Size: size, Unit: "entries", Malformed: about.Malformed, Tiers: []traceTierRow{}}
		if bytes {
			row.Unit = "bytes"
		}
		jobs = append(jobs, &traceJob{row: row, memory: memory, run: run})
	}
	bound := func(size int64, bytes bool) (again bool) {
		at := traceBound{size, bytes}
		if bounded[at] {
			return true
		}
		bounded[at] = true
		memory := optimal.EntryMemory * min(size, about.Keys)
		if bytes {
			memory = 0
		}
		add(optimum, size, bytes, memory, func(ctx context.Context, row *traceRow, tick func(int64)) error {
			find := optimal.Belady
			if bytes {
				find = optimal.Volume
			}
			tally, err := find(ctx, rec, size, tick)
			row.fill(&tally, fields)
			if bytes { // a bound of hits, and of nothing else
				row.ReadHits, row.ReadHitRatio, row.ByteHitRatio, row.CostHitRatio = nil, nil, nil, nil
			}
			return err
		})
		return false
	}
	through := func(policy string, size int64, tiers []replay.Tier) {
		add(policy, size, tiers[0].Bytes, replay.Memory(rec, tiers), func(ctx context.Context, row *traceRow, tick func(int64)) error {
			result, err := replay.Run(ctx, rec, tiers, s.Seed, tick)
			row.fill(&result.Tally, fields)
			row.fillTiers(result.Tiers)
			return err
		})
	}
	for _, size := range s.sizes {
		n := size.of(about.Keys)
		if size.bytes && !fields.Sizes {
			about.note("the trace has no sizes of objects: nothing is replayed at sizes in bytes")
			continue
		}
		if bound(n, size.bytes) {
			continue // two shares of few keys
		}
		var entries []string
		for _, policy := range s.policies() {
			if size.bytes && !replay.CanBytes(policy) {
				entries = append(entries, policy)
				continue
			}
			through(policy, n, []replay.Tier{{Name: policy, Policy: policy, Size: n, Bytes: size.bytes}})
		}
		if len(entries) > 0 {
			about.note("%s: bounded by entries, and not replayed at sizes in bytes, where tiers cannot have them either", strings.Join(entries, ", "))
		}
	}
	for _, c := range s.combinations {
		tiers, together := c.tiers(about.Keys)
		if tiers[0].Bytes && !fields.Sizes {
			about.note("the trace has no sizes of objects: nothing is replayed at sizes in bytes")
			continue
		}
		bound(together, tiers[0].Bytes)
		names := make([]string, len(tiers))
		for i, t := range tiers {
			names[i] = t.Name + ":" + t.Policy
		}
		through(strings.Join(names, "+"), together, tiers)
	}
	return jobs
}

// policies are those to replay, beside the bound.
func (s *traceSettings) policies() []string {
	var all []string
	for _, p := range s.Policies {
		if p == optimum {
			continue
		}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
		if sharded := p + replay.Sharded; p == "lru" && !slices.Contains(s.Policies, sharded) {
			all = append(all, sharded)
		}
	}
	return all
}

// large reports whether what it leaves behind has to be given back at once.
func (j *traceJob) large() bool { return j.memory > jobsMemory/3 }

const (
	// jobsMemory is what those that run at a time may take together, unless one alone
	// takes more.
	jobsMemory = 114 << 20
	// processMemory is what is aimed at for the process while that is so: a third more.
	processMemory = 152 << 20
	// tight is by how many percent the heap may grow between two collections where one job
	// takes more: at twice what is alive, as by default, that would be twice as much.
	tight = 20
)

// collect has garbage collected as often as it takes to stay within bounds with the jobs,
// and no more often. The result ends that.
func collect(jobs []*traceJob) (end func()) {
	if !slices.ContainsFunc(jobs, (*traceJob).large) {
		return func() {}
	}
	debug.FreeOSMemory() // what reading the trace took
	if slices.ContainsFunc(jobs, func(j *traceJob) bool { return j.memory > jobsMemory }) {
		percent := debug.SetGCPercent(tight)
		return func() { debug.SetGCPercent(percent) }
	}
	limit := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(limit, processMemory))
	return func() { debug.SetMemoryLimit(limit) }
}

// inOrder returns the jobs in the order in which they begin: of those of a size first what
// takes the most memory, which takes the longest too.
func inOrder(jobs []*traceJob) []*traceJob {
	ordered := slices.Clone(jobs)
	for rest := ordered; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].row.Size == rest[0].row.Size && rest[n].row.Unit == rest[0].row.Unit {
			n++
		}
		slices.SortStableFunc(rest[:n], func(x, y *traceJob) int { return cmp.Compare(y.memory, x.memory) })
		rest = rest[n:]
	}
	return ordered
}

// runJobs runs as many at a time as there are processors and room for. It returns the first
// error; what was done by then is marked so.
func runJobs(ctx context.Context, jobs []*traceJob, p *traceProgress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.replaying(len(jobs))
	defer collect(jobs)()
	jobs = inOrder(jobs)
	memory := newRoom(jobsMemory)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(len(jobs), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) || ctx.Err() != nil {
					return
				}
				release := memory.take(ctx, jobs[i].memory)
				began := time.Now()
				err := jobs[i].run(ctx, &jobs[i].row, p.ticker(i, &jobs[i].row))
				if jobs[i].large() {
					debug.FreeOSMemory() // before the next one takes as much
				}
				release()
				if err != nil {
					cancel(err)
					return
				}
				jobs[i].row.Seconds = time.Since(began).Seconds()
				jobs[i].done = true
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// traceProgress tells how far the reading and replaying is, in the background.
type traceProgress struct {
	*progress
	files int64 // bytes of all whose size is known
	past  int64 // of those that are done
	stop  chan struct{}
	over  sync.WaitGroup

	mu       sync.Mutex
	in       *traceInput
	reader   *trace.Reader // while it is read
	requests int64
	what     string
	did      []atomic.Int64 // requests, of each job
	read     atomic.Int64   // requests
	linked   atomic.Int64
}

const (
	readingPart = 0.1 // of the time that a trace takes, about
	linkingPart = 0.1
	redraw      = 200 * time.Millisecond
)

func newTraceProgress(stderr io.Writer, inputs []*traceInput) *traceProgress {
	p := &traceProgress{progress: newProgress(stderr, len(inputs)), stop: make(chan struct{})}
	for _, in := range inputs {
		p.files += max(1, in.size)
	}
	if p.w == nil {
		return p
	}
	p.over.Go(func() {
		for t := time.NewTicker(redraw); ; {
			select {
			case <-p.stop:
				t.Stop()
				return
			case <-t.C:
				p.draw()
			}
		}
	})
	return p
}

func (p *traceProgress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in == nil {
		return
	}
	done, what := 0.0, p.what
	switch {
	case p.reader != nil:
		what = fmt.Sprintf("reading, %d requests", p.read.Load())
		if p.in.size > 0 {
			done = readingPart * min(1, float64(p.reader.Consumed())/float64(p.in.size))
		}
	case p.requests > 0:
		done = readingPart + linkingPart*ratio64(p.linked.Load(), p.requests)
		if n := len(p.did); n > 0 {
			sum := int64(0)
			for i := range p.did {
				sum += p.did[i].Load()
			}
			done = readingPart + linkingPart + (1-readingPart-linkingPart)*ratio64(sum, p.requests*int64(n))
		}
	}
	size := float64(max(1, p.in.size))
	p.share((float64(p.past)+done*size)/float64(p.files), filepath.Base(p.in.name)+": "+what)
}

// begin says that the trace is next.
func (p *traceProgress) begin(in *traceInput) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in != nil {
		p.past += max(1, p.in.size)
	}
	p.in, p.what, p.requests, p.did = in, "reading", 0, nil
	p.linked.Store(0)
}

func (p *traceProgress) reading(r *trace.Reader) (tick func(int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reader = r
	return p.read.Store
}

func (p *traceProgress) linking(requests int64) (tick func(int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reader, p.what, p.requests = nil, "looking ahead", requests
	return p.linked.Store
}

func (p *traceProgress) replaying(jobs int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.did = make([]atomic.Int64, jobs)
}

// ticker returns what counts the requests of a job.
func (p *traceProgress) ticker(job int, row *traceRow) func(int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = fmt.Sprintf("%s at %s", row.Policy, row.size())
	return p.did[job].Store
}

// end wipes the line.
func (p *traceProgress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress.end()
}

// finish ends the drawing.
func (p *traceProgress) finish() {
	close(p.stop)
	p.over.Wait()
	p.end()
}

func ratio64(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
