package coordinator

import (
	"context"
	"sync"
	"time"
)

// budget is the context of one call of a tier: part of a flight's work, with a time
// limit. It does what context.WithTimeout would with one object, and without a timer of
// its own. Who keeps it longer than the call keeps nothing of the flight.
type budget struct {
	ending
	parent *detached       // until it is released
	values context.Context // the caller's
	hook   hook
	queue  *deadlines
	over   time.Duration // when its time is, by the queue's clock

	// Guarded by the queue's lock.
	earlier, later *budget
	unheed         func() bool // ends that the caller is heeded
	heeds          bool        // he is
	queued         bool

	called   bool // it ends with the caller's context too
	nodeless bool
}

// caller returns the context with whose end the budget ends too, or nil.
func (b *budget) caller() context.Context {
	if b.called {
		return b.values
	}
	return nil
}

// Done implements [context.Context].
func (b *budget) Done() <-chan struct{} {
	b.heedCaller()
	return b.ending.Done()
}

// Err implements [context.Context].
func (b *budget) Err() error {
	if b.called {
		if err := b.values.Err(); err != nil {
			b.end(err)
		}
	}
	return b.ending.Err()
}

// AfterFunc is that of the ending.
func (b *budget) AfterFunc(call func()) (stop func() bool) {
	b.heedCaller()
	return b.ending.AfterFunc(call)
}

// Interrupt is what the stores that gather reads look for in a context: it is Done for who
// waits for one thing more, and needs no channel of its own. With a budget ends, where it
// is not nil, what is returned beside.
func (b *budget) Interrupt(c chan<- bool) (beside context.Context, ok bool) {
	return b.caller(), b.interrupt(c)
}

// heedCaller ends the budget with the caller's context, for a store that waits for its
// end. Few do, since the end is seldom what a call waits for.
func (b *budget) heedCaller() {
	if !b.called {
		return
	}
	b.queue.mu.Lock()
	first := b.queued && !b.heeds
	b.heeds = true
	b.queue.mu.Unlock()
	if !first {
		return
	}
	unheed := context.AfterFunc(b.values, func() { b.end(b.values.Err()) })
	b.queue.mu.Lock()
	if b.queued {
		b.unheed, unheed = unheed, nil
	}
	b.queue.mu.Unlock()
	if unheed != nil { // the call has ended meanwhile
		unheed()
	}
}

// Deadline implements [context.Context].
func (b *budget) Deadline() (time.Time, bool) { return b.queue.epoch.Add(b.over), true }

// Values is what the stores that gather reads look for in a context: the one whose values
// it has, which they may keep for longer than the call.
func (b *budget) Values() context.Context {
	if b.nodeless {
		return nodelessValues{b.values}
	}
	return b.values
}

// nodelessValues is the values of a context as a budget without a node has them.
type nodelessValues struct{ context.Context }

// Value implements [context.Context].
func (v nodelessValues) Value(key any) any { return valueOf(v.Context, true, key) }

// Value implements [context.Context].
func (b *budget) Value(key any) any { return valueOf(b.values, b.nodeless, key) }

// budgets are those that are free to be used again.
var budgets = sync.Pool{New: func() any { return new(budget) }}

// within returns a context that ends with d, or when the limit has passed. It must be
// released.
func (d *detached) within(q *deadlines) *budget {
	b := budgets.Get().(*budget)
	b.parent, b.values, b.called, b.nodeless = d, d.values, d.called, d.nodeless
	b.queue, b.over = q, q.over()
	b.hook.child = &b.ending
	if !d.hook(&b.hook) {
		b.end(d.Err())
		return b
	}
	q.add(b)
	return b
}

// release is the end of the call. Nobody may have kept anything of a forgotten budget whose
// end has not come.
func (b *budget) release(forgotten bool) {
	unheed := b.queue.remove(b)
	if unheed != nil {
		unheed()
	}
	b.parent.unhook(&b.hook)
	b.parent = nil
	// Behind these nobody ends it any more but who heeded the caller.
	if forgotten && unheed == nil && b.isUntouched() {
		*b = budget{}
		budgets.Put(b)
		return
	}
	b.end(context.Canceled)
}
