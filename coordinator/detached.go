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
}

// withoutEnd returns a context with the values alone.
func withoutEnd(ctx context.Context) context.Context {
	if _, limited := ctx.Deadline(); !limited && ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// Deadline implements [context.Context].
func (d *detached) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements [context.Context].
func (d *detached) Value(key any) any { return valueOf(d.values, d.nodeless, key) }

func valueOf(values context.Context, nodeless bool, key any) any {
	if _, ok := key.(nodeKey); ok && nodeless {
		return nil
	}
	return values.Value(key)
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
