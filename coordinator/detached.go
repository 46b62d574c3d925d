package coordinator

import (
	"context"
	"sync"
	"time"
)

// detached is the context of what a flight does: it has the values of the caller who
// came first, and ends by the flight's will alone. It is a part of its flight, so
// that a flight needs few objects, and makes a channel only for who asks for one.
type detached struct {
	values   context.Context
	deadline time.Time // zero: none
	node     *node     // what nodeOf finds, with ownNode
	ownNode  bool

	mu    sync.Mutex
	done  chan struct{}
	err   error // when it has ended
	hooks map[*hook]struct{}
}

// hook is a function to be called at a context's end.
type hook struct{ call func() }

// Deadline implements [context.Context].
func (d *detached) Deadline() (time.Time, bool) { return d.deadline, !d.deadline.IsZero() }

// Done implements [context.Context].
func (d *detached) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
		if d.err != nil {
			close(d.done)
		}
	}
	return d.done
}

// Err implements [context.Context].
func (d *detached) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Value implements [context.Context].
func (d *detached) Value(key any) any {
	if _, ok := key.(nodeKey); ok && d.ownNode {
		return d.node
	}
	return d.values.Value(key)
}

// AfterFunc is what package context looks for in a context that is not its own: with
// it a context derived from this one needs no goroutine.
func (d *detached) AfterFunc(call func()) (stop func() bool) {
	h := &hook{call}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		go call()
		return func() bool { return false }
	}
	if d.hooks == nil {
		d.hooks = make(map[*hook]struct{})
	}
	d.hooks[h] = struct{}{}
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, there := d.hooks[h]
		delete(d.hooks, h)
		return there
	}
}

// end ends the context, once.
func (d *detached) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return
	}
	d.err = err
	if d.done != nil {
		close(d.done)
	}
	for h := range d.hooks {
		go h.call()
	}
	d.hooks = nil
}
