package coordinator

import (
	"context"
	"time"
)

// budget is the context of one call of a tier: part of a flight's work, with a time
// limit. It does what context.WithTimeout would with one object, and without a timer of
// its own. Who keeps it longer than the call keeps nothing of the flight.
type budget struct {
	ending
	parent   *detached // until it is released
	values   context.Context
	nodeless bool
	hook     hook
	deadline time.Time
	queue    *deadlines

	// Guarded by the queue's lock.
	earlier, later *budget
	queued         bool
}

// Deadline implements [context.Context].
func (b *budget) Deadline() (time.Time, bool) { return b.deadline, true }

// Value implements [context.Context].
func (b *budget) Value(key any) any { return valueOf(b.values, b.nodeless, key) }

// within returns a context that ends with d, or when the limit has passed. It must be
// released.
func (d *detached) within(q *deadlines) *budget {
	b := &budget{parent: d, values: d.values, nodeless: d.nodeless, queue: q, deadline: time.Now().Add(q.limit)}
	b.hook.child = &b.ending
	if !d.hook(&b.hook) {
		b.end(d.Err())
		return b
	}
	q.add(b)
	return b
}

func (b *budget) release() {
	b.queue.remove(b)
	b.parent.unhook(&b.hook)
	b.parent = nil
	b.end(context.Canceled)
}
