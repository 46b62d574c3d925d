package coordinator

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Budgets that begin and are released in any order end each at its own time, and
// nothing is left of those that were released.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 50 * time.Millisecond
		q := newDeadlines(limit)
		d := newDetached()
		var calls sync.WaitGroup
		for seed := range uint64(500) {
			r := rand.New(rand.NewPCG(seed, 1))
			calls.Go(func() {
				time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
				b, began := d.within(q), time.Now()
				defer b.release(false)
				if r.IntN(2) == 0 {
					time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
					if err := b.Err(); err != nil {
						t.Errorf("after %v: got error %v, want none", time.Since(began), err)
					}
					return
				}
				<-b.Done()
				if took := time.Since(began); took != limit || !errors.Is(b.Err(), context.DeadlineExceeded) {
					t.Errorf("ended after %v with %v, want after %v with the deadline exceeded", took, b.Err(), limit)
				}
			})
		}
		calls.Wait()
		if q.first != nil || q.last != nil || d.hooks != nil {
			t.Error("budgets are left in line")
		}
		q.rest()
		if q.armed {
			t.Error("the timer is left running")
		}
		b := d.within(q)
		<-b.Done() // also after a rest
		b.release(false)
	})
}

// A limit so long that its end has no time is no end in the past.
func TestDeadlinesThatNeverCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, d := newDeadlines(math.MaxInt64), newDetached()
		time.Sleep(time.Second) // the end would be later than there are durations
		first := d.within(q)
		time.Sleep(time.Second)
		b := d.within(q)
		if end, _ := b.Deadline(); time.Until(end) < time.Hour {
			t.Errorf("deadline: got %v", end)
		}
		first.release(true)
		q.ring() // as its timer would, if it came to run
		if err := b.Err(); err != nil {
			t.Errorf("got error %v, want none", err)
		}
		b.release(true)
		q.rest()
	})
}

// Close does not wait for calls that it has ended. The timer goes with the last of them.
func TestDeadlinesRestBehindClose(t *testing.T) {
	q, d := newDeadlines(time.Hour), newDetached()
	first, last := d.within(q), d.within(q)
	q.rest()
	first.release(true)
	if !q.armed {
		t.Error("the timer is stopped while there is a call")
	}
	last.release(true)
	if q.armed {
		t.Error("the timer is left running")
	}
}

// A budget that is used again has the values and the time of its own call, however late the
// one before ended: of its limit, of its parent, or not at all.
func TestBudgetsAreUsedAgain(t *testing.T) {
	const limit = 200 * time.Microsecond
	q := newDeadlines(limit)
	var calls sync.WaitGroup
	var ended, released atomic.Int64
	for number := range 8 {
		calls.Go(func() {
			r := rand.New(rand.NewPCG(uint64(number), 1))
			ctx := context.WithValue(context.Background(), valueKey{}, number)
			for range 1000 {
				d := &detached{values: ctx}
				began := time.Now()
				b := d.within(q)
				cancelled := r.IntN(20) == 0
				if cancelled {
					go d.end(context.Canceled)
				}
				stop := func() bool { return true }
				if r.IntN(4) == 0 {
					stop = context.AfterFunc(b, func() {})
				}
				for spun := time.Duration(0); b.Err() == nil && spun < time.Duration(r.IntN(250))*time.Microsecond; {
					spun = time.Since(began)
				}
				for stays := r.IntN(40) == 0; stays && b.Err() == nil; {
					q.ring() // as its timer would, if it came to run
				}
				switch err := b.Err(); {
				case err == nil:
					released.Add(1)
				case cancelled && errors.Is(err, context.Canceled):
				case !errors.Is(err, context.DeadlineExceeded) || time.Since(began) < limit:
					t.Errorf("ended with %v after %v, want the deadline exceeded after %v", err, time.Since(began), limit)
				default:
					ended.Add(1)
				}
				if got := b.Value(valueKey{}); got != number {
					t.Errorf("value: got %v, want %d", got, number)
				}
				stop()
				b.release(true)
			}
		})
	}
	calls.Wait()
	if ended.Load() == 0 || released.Load() == 0 {
		t.Errorf("%d ended, %d were released before: want some of both", ended.Load(), released.Load())
	}
	q.rest()
}
