// Package capture keeps a trace in temporary files, so that it can be replayed any
// number of times, from a pipe as well, and gone through from its end. It takes 8 bytes of
// disk a request, 8 more for when its key is asked for next, and 8 each where the trace
// has sizes or operations, and costs.
//
// In memory there are 64 MiB at most for [Trace.Link], and else a few buffers, for a
// trace of any length and of any number of keys.
package capture

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/terracecache/terrace/bench/internal/trace"
)

// Trace is a trace that was read. Its methods may be called concurrently when
// [Trace.Link] has returned.
type Trace struct {
	dir    string
	fields trace.Fields
	keys   *column
	sized  *column // size<<2 | operation; nil: the trace has neither
	costs  *column // nil: the trace has none
	next   *column // nil: not linked

	counts   Counts
	distinct int64
}

// Counts are how many requests there are.
type Counts struct{ Requests, Reads, Writes, Deletes int64 }

// opBits of a number in sized are the operation.
const opBits = 2

// Record reads a trace to its end. Malformed lines are given to bad, and tick is told
// now and then how many requests there are. If the trace breaks off, the recording of
// what was read is returned with a [*trace.Broken]; any other error comes alone. The
// files lie in dir; empty: where the system has temporary files.
func Record(ctx context.Context, r *trace.Reader, dir string, bad func(*trace.Malformed), tick func(int64)) (rec *Trace, err error) {
	if rec, err = newTrace(dir, r.Fields()); err != nil {
		return nil, err
	}
	broken := (*trace.Broken)(nil)
	defer func() {
		if err != nil && !errors.As(err, &broken) {
			rec.Close()
			rec = nil
		}
	}()
	var end error
	var q trace.Request
	for turns := 0; ; turns++ {
		if turns%chunk == 0 {
			if err := ctx.Err(); err != nil {
				return rec, err
			}
			tick(rec.counts.Requests)
		}
		if err := r.Next(&q); err != nil {
			if m := (*trace.Malformed)(nil); errors.As(err, &m) {
				bad(m)
				continue
			}
			if !errors.Is(err, io.EOF) || errors.As(err, &broken) {
				end = err
			}
			break
		}
		if err := rec.add(&q); err != nil {
			return rec, err
		}
	}
	if err := rec.flush(); err != nil {
		return rec, err
	}
	return rec, end
}

// newTrace returns a recording of nothing yet.
func newTrace(dir string, fields trace.Fields) (rec *Trace, err error) {
	rec = &Trace{dir: dir, fields: fields}
	defer func() {
		if err != nil {
			rec.Close()
			rec = nil
		}
	}()
	if rec.keys, err = newColumn(dir); err != nil {
		return rec, err
	}
	if fields.Sizes || fields.Ops {
		if rec.sized, err = newColumn(dir); err != nil {
			return rec, err
		}
	}
	if fields.Costs {
		rec.costs, err = newColumn(dir)
	}
	return rec, err
}

// flush writes what was added last.
func (r *Trace) flush() error {
	for _, c := range []*column{r.keys, r.sized, r.costs} {
		if c == nil {
			continue
		}
		if err := c.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Trace) add(q *trace.Request) error {
	r.counts.Requests++
	switch q.Op {
	case trace.Delete:
		r.counts.Deletes++
	case trace.Write:
		r.counts.Writes++
	default:
		r.counts.Reads++
	}
	if err := r.keys.add(q.Key); err != nil {
		return err
	}
	if r.sized != nil {
		if err := r.sized.add(uint64(q.Size)<<opBits | uint64(q.Op)); err != nil {
			return err
		}
	}
	if r.costs != nil {
		return r.costs.add(math.Float64bits(q.Cost))
	}
	return nil
}

// Fields says what the requests have beside their keys.
func (r *Trace) Fields() trace.Fields { return r.fields }

// Counts returns how many requests there are.
func (r *Trace) Counts() Counts { return r.counts }

// Distinct returns how many keys there are. The recording is linked.
func (r *Trace) Distinct() int64 { return r.distinct }

// Batch is requests in a row.
type Batch struct {
	First    int64 // the first one's number, from 0
	Requests []trace.Request
	// Next is for each request that of the next one of its key, or [Gone] or [Never]. Nil
	// if the recording is not linked.
	Next []int64
}

// What comes after a request where no other follows that could be a hit.
const (
	Gone  = math.MaxInt64 - 1 // its key is deleted next
	Never = math.MaxInt64     // its key does not come again
)

// Each calls f with all requests in turn. The batch is f's until it returns.
func (r *Trace) Each(ctx context.Context, f func(*Batch) error) error {
	var w window
	b := Batch{Requests: make([]trace.Request, chunk)}
	if r.next != nil {
		b.Next = make([]int64, chunk)
	}
	for b.First < r.counts.Requests {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.batch(&b, &w); err != nil {
			return err
		}
		if err := f(&b); err != nil {
			return err
		}
		b.First += int64(len(b.Requests))
	}
	return nil
}

func (r *Trace) batch(b *Batch, w *window) error {
	keys, err := r.keys.read(b.First, w)
	if err != nil {
		return err
	}
	b.Requests = b.Requests[:len(keys)]
	for i, key := range keys {
		b.Requests[i] = trace.Request{Key: key}
	}
	if r.sized != nil {
		sized, err := r.sized.read(b.First, w)
		if err != nil {
			return err
		}
		for i, v := range sized {
			b.Requests[i].Size, b.Requests[i].Op = int64(v>>opBits), trace.Op(v&(1<<opBits-1))
		}
	}
	if r.costs != nil {
		costs, err := r.costs.read(b.First, w)
		if err != nil {
			return err
		}
		for i, v := range costs {
			b.Requests[i].Cost = math.Float64frombits(v)
		}
	}
	if r.next != nil {
		next, err := r.next.read(b.First, w)
		if err != nil {
			return err
		}
		b.Next = b.Next[:len(next)]
		for i, v := range next {
			b.Next[i] = int64(v)
		}
	}
	return nil
}

// Close removes the files.
func (r *Trace) Close() {
	for _, c := range []*column{r.keys, r.sized, r.costs, r.next} {
		c.close()
	}
}
