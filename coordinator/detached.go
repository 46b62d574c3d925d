package coordinator

import (
	"context"
	"time"
)

// detached is the context of what a flight does with the tiers: it has the values of the
// caller who came first, and ends by the flight's will alone. It is a part of its flight,
// so that a flight needs few objects.
type detached struct {
	ending
	values   context.Context
	nodeless bool // nodeOf is to find none
	lane     byte // of deadlines

	// called is set while the caller who leads the flight, whose context values is, searches
	// for it. The search ends with his context, and the flight goes on without him.
	called bool
}

// isLeft reports whether the caller who searches has to leave.
func (d *detached) isLeft() bool { return d.called && d.values.Err() != nil }

// Err implements [context.Context].
func (d *detached) Err() error {
	if d.isLeft() {
		return d.values.Err()
	}
	return d.ending.Err()
}

// Deadline implements [context.Context].
func (d *detached) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements [context.Context].
func (d *detached) Value(key any) any { return valueOf(d.values, d.nodeless, key) }

func valueOf(values context.Context, nodeless bool, key any) any {
	if _, ok := key.(nodeKey); ok && nodeless {
		return nil
	}
	// What package context finds in a context that can be cancelled is no value of it.
	return context.WithoutCancel(values).Value(key)
}

// sleep waits, and reports whether the context has not ended meanwhile.
func (d *detached) sleep(t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.Done():
		return false
	}
}
