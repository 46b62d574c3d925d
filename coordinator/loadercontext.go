package coordinator

import (
	"context"
	"time"
)

// loaderContext is the context of a loader's call: it has the values of the caller who
// came first and the load's deadline, and carries the flight's node.
type loaderContext struct {
	ending
	values   context.Context
	deadline time.Time
	node     *node
}

// Deadline implements [context.Context].
func (c *loaderContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Value implements [context.Context].
func (c *loaderContext) Value(key any) any {
	if _, ok := key.(nodeKey); ok {
		return c.node
	}
	return valueOf(c.values, false, key)
}
