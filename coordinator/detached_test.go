package coordinator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type valueKey struct{}

func newDeadlines(limit time.Duration) *deadlines {
	q := new(deadlines)
	q.setLimit(limit)
	return q
}

func newDetached() *detached {
	caller, cancel := context.WithCancel(context.WithValue(context.Background(), valueKey{}, "value"))
	defer cancel()
	return &detached{values: context.WithoutCancel(caller)}
}

func TestDetachedHasTheCallersValuesAlone(t *testing.T) {
	d := newDetached()
	if got := d.Value(valueKey{}); got != "value" {
		t.Errorf("value: got %v", got)
	}
	if err := d.Err(); err != nil {
		t.Errorf("a context whose caller has gone: got error %v", err)
	}
	if _, ok := d.Deadline(); ok {
		t.Error("there is a deadline")
	}
	loader := &loaderContext{values: d, node: &node{}}
	if nodeOf(loader) != loader.node {
		t.Error("the node is not found")
	}
	within := &detached{values: loader}
	if nodeOf(within) != loader.node {
		t.Error("the caller's node is not found")
	}
	within.nodeless = true
	if nodeOf(within) != nil {
		t.Error("a node is found where there is to be none")
	}
}

// Whatever is derived from it, before or after, ends with it, without a goroutine
// for each.
func TestDetachedEndsWhatIsDerived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDetached()
		before, cancel := context.WithTimeout(d, time.Hour)
		defer cancel()
		called := make(chan struct{})
		context.AfterFunc(d, func() { close(called) })
		stopped := context.AfterFunc(d, func() { t.Error("a function was called that had been stopped") })
		if !stopped() || stopped() {
			t.Error("stop: want true once")
		}
		synctest.Wait()

		done := d.Done()
		d.end(context.DeadlineExceeded)
		d.end(context.Canceled) // the first counts
		<-done
		<-d.Done()
		<-before.Done()
		<-called
		after, cancel := context.WithCancel(d)
		defer cancel()
		<-after.Done()
		for name, ctx := range map[string]context.Context{"itself": d, "derived before": before, "derived after": after} {
			if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got error %v, want deadline exceeded", name, err)
			}
		}
		late := make(chan struct{})
		context.AfterFunc(d, func() { close(late) })
		<-late
	})
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDetached()
		start := time.Now()
		b := d.within(newDeadlines(time.Second))
		if end, ok := b.Deadline(); !ok || !end.Equal(start.Add(time.Second)) {
			t.Errorf("deadline: got %v, %v", end, ok)
		}
		if got := b.Value(valueKey{}); got != "value" {
			t.Errorf("value: got %v", got)
		}
		<-b.Done()
		if err := b.Err(); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: got error %v, want deadline exceeded after a second", time.Since(start), err)
		}
		b.release(false)

		released := d.within(newDeadlines(time.Second))
		other := d.within(newDeadlines(time.Hour))
		last := d.within(newDeadlines(time.Hour))
		released.release(false)
		if err := released.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("released: got error %v, want canceled", err)
		}
		last.release(false)
		d.end(context.Canceled)
		<-other.Done()
		if err := other.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("after its parent: got error %v, want canceled", err)
		}
		late := d.within(newDeadlines(time.Hour))
		<-late.Done()
		for _, b := range []*budget{other, late} {
			b.release(false)
		}
		if d.hooks != nil {
			t.Error("hooks are left")
		}
	})
}

// A budget of a caller who searches himself ends with him, whatever the store asks: for
// its channel, for its error, for a call, or for an interruption beside the caller's.
func TestBudgetEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, leave := context.WithCancel(t.Context())
		d := newDetached()
		d.values, d.called = caller, true
		q := newDeadlines(time.Hour)
		waits, asks, calls, lean, released := d.within(q), d.within(q), d.within(q), d.within(q), d.within(q)
		called := make(chan struct{})
		calls.AfterFunc(func() { close(called) })
		woken := make(chan bool, 1)
		beside, ok := lean.Interrupt(woken)
		if beside != caller || !ok {
			t.Errorf("Interrupt: got %v, %v, want the caller's context", beside, ok)
		}
		if _, ok := lean.Interrupt(woken); ok {
			t.Error("a second one interrupts beside the first")
		}
		ended := released.Done()
		released.release(false)
		<-ended
		if err := released.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("released: got error %v", err)
		}
		done := waits.Done()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("ended before its caller")
		default:
		}
		leave()
		<-done
		<-called
		for _, b := range []*budget{waits, asks, calls, lean} {
			if err := b.Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want the caller's", err)
			}
		}
		if !d.isLeft() || !errors.Is(d.Err(), context.Canceled) {
			t.Errorf("the search goes on with error %v", d.Err())
		}
		if <-woken {
			t.Error("woken as if there were an answer")
		}
		lean.Uninterrupt()
		for _, b := range []*budget{waits, asks, calls, lean} {
			b.release(false)
		}
		d.called = false
		if d.Err() != nil || d.hooks != nil || q.first != nil {
			t.Errorf("left behind: error %v, hooks %v, budgets %v", d.Err(), d.hooks, q.first)
		}
	})
}
