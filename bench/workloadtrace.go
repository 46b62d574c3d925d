package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/terracecache/terrace/bench/internal/trace"
)

// traceWorkload is the beginning of a recorded trace, as many requests as are run, or
// all, which are then gone through again and again at the bench's rate; with --speed at
// their own times, and not again. Lines that are left out are told on stderr.
func (s *settings) traceWorkload(ctx context.Context, n int, stderr io.Writer) (*workload, error) {
	from, err := openTraceSource(s.Trace)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	defer from.Close()
	w, err := s.readWorkload(ctx, from, n, stderr)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil:
		return w, nil
	}
	err = fmt.Errorf("--trace %s: %w", s.Trace, err)
	if errors.As(err, new(*trace.Broken)) {
		err = failure{err}
	}
	return nil, err
}

func (s *settings) readWorkload(ctx context.Context, from io.Reader, n int, stderr io.Writer) (*workload, error) {
	r, err := trace.NewReader(newInterruptible(ctx, from), trace.Options{Name: s.Trace, Format: trace.Format(s.Format), Seed: s.Seed, Times: s.Speed > 0})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var timing *ownTiming
	if s.Speed > 0 {
		timing = &ownTiming{speed: s.Speed, seconds: s.WarmupSeconds + s.Seconds}
		n = 0
	}
	b := workloadBuilder{w: new(workload), timing: timing, indexes: make(map[uint64]uint32), n: max(n, closedSequence)}
	var faults traceFaults
	var request trace.Request
	for turn := 0; !b.full(); turn++ {
		if turn%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err := r.Next(&request)
		if bad := (*trace.Malformed)(nil); errors.As(err, &bad) {
			faults.add(bad)
			continue
		}
		if errors.As(err, new(*trace.Broken)) {
			b.w.broken = err
			break
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && timing != nil && !r.Fields().Times {
			err = fmt.Errorf("it is in the format %s, and has no times: leave --speed out, and say with --rate how fast it comes", r.Format())
		}
		if err == nil {
			err = b.add(&request)
		}
		if err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // which may have broken the trace off
	}
	if err := b.end(); err != nil {
		return nil, err
	}
	faults.tell(s.Trace, stderr)
	w := b.w
	w.malformed = faults.n
	if len(w.sequence) == 0 {
		if w.broken != nil {
			return nil, w.broken
		}
		return nil, r.NoRequests()
	}
	if doubt := r.Doubt(); doubt != "" {
		w.notes = append(w.notes, s.Trace+" "+doubt)
	}
	if faults.n > 0 {
		w.notes = append(w.notes, fmt.Sprintf("%d lines or records of %s are malformed, and left out; the first: %s", faults.n, s.Trace, oneLine(faults.first[0])))
	}
	if w.broken != nil {
		w.broken = fmt.Errorf("--trace %s: after %d requests: %w", s.Trace, len(w.sequence), w.broken)
		w.notes = append(w.notes, oneLine(w.broken.Error()))
	}
	if timing != nil {
		if err := w.timed(timing, s.WarmupSeconds); err != nil {
			return nil, errors.Join(err, w.broken)
		}
	}
	return w, nil
}

// workloadBuilder makes a workload of requests.
type workloadBuilder struct {
	w       *workload
	timing  *ownTiming // nil: their times do not matter
	indexes map[uint64]uint32
	n       int // how many are wanted
	// behind are requests in a row whose time is behind the end. If enough come it is
	// over; if one comes that is not, they were strays, as of a damaged line.
	behind []trace.Request
}

// enoughBehind requests in a row are no strays.
const enoughBehind = 1000

// full reports whether no more are wanted.
func (b *workloadBuilder) full() bool {
	return len(b.w.sequence) >= b.n && (b.timing == nil || b.timing.over)
}

func (b *workloadBuilder) add(q *trace.Request) error {
	if o := b.timing; o != nil && !o.over {
		if !o.fits(q.Time) {
			if b.behind = append(b.behind, *q); len(b.behind) == enoughBehind {
				return b.end()
			}
			return nil
		}
		o.ahead += len(b.behind)
		b.behind = b.behind[:0]
		if err := o.add(q.Time); err != nil {
			return err
		}
	}
	return b.take(q)
}

// end takes what is behind the end, for the closed loop, if there is some.
func (b *workloadBuilder) end() error {
	if len(b.behind) > 0 {
		b.timing.end(b.behind[0].Time)
	}
	for i := range b.behind {
		if err := b.take(&b.behind[i]); err != nil {
			return err
		}
	}
	b.behind = nil
	return nil
}

func (b *workloadBuilder) take(q *trace.Request) error {
	w := b.w
	k, known := b.indexes[q.Key]
	if !known {
		if len(w.keys) == maxKeys {
			return fmt.Errorf("more than %d keys", maxKeys)
		}
		k = uint32(len(w.keys))
		b.indexes[q.Key] = k
		w.keys = append(w.keys, fmt.Sprintf("key-%016x", q.Key))
	}
	w.sequence = append(w.sequence, k)
	if q.Op != trace.Read && w.ops == nil {
		w.ops = make([]operation, len(w.sequence)-1, max(len(w.sequence), b.n))
	}
	if w.ops != nil {
		w.ops = append(w.ops, operationOf(q.Op))
	}
	return nil
}

func operationOf(op trace.Op) operation {
	switch op {
	case trace.Write:
		return opWrite
	case trace.Delete:
		return opDelete
	default:
		return opRead
	}
}
