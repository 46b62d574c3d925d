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
	hooks *hook
}

// hook is what happens at a context's end: a function is called, or a child ends. It
// is in the list of its context until it is taken out or that has ended.
type hook struct {
	call       func()
	child      *detached
	in         bool
	prev, next *hook
}

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
	h := &hook{call: call}
	if !d.hook(h) {
		go call()
	}
	return func() bool { return d.unhook(h) }
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

// hook adds to the list, unless the context has ended.
func (d *detached) hook(h *hook) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return false
	}
	if h.next = d.hooks; h.next != nil {
		h.next.prev = h
	}
	d.hooks = h
	h.in = true
	return true
}

// unhook takes out of the list, and reports whether it was in there.
func (d *detached) unhook(h *hook) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !h.in {
		return false
	}
	h.in = false
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		d.hooks = h.next
	}
	if h.next != nil {
		h.next.prev = h.prev
	}
	return true
}

// end ends the context, once, and what was derived from it.
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
	for h := d.hooks; h != nil; h = h.next {
		h.in = false
		if h.child != nil {
			h.child.end(err)
		} else {
			go h.call()
		}
	}
	d.hooks = nil
}

// budget is the context of one call of a tier: part of a flight's work, with a time
// limit. It does what context.WithTimeout would, with half as many objects.
type budget struct {
	detached
	parent *detached
	hook   hook
	timer  *time.Timer
}

// within returns a context that ends with d, or when the limit has passed. It must be
// released.
func (d *detached) within(limit time.Duration) *budget {
	b := &budget{parent: d}
	b.values = d
	b.deadline = time.Now().Add(limit)
	b.hook.child = &b.detached
	if !d.hook(&b.hook) {
		b.end(d.Err())
		return b
	}
	b.timer = time.AfterFunc(limit, b.expire)
	return b
}

func (b *budget) expire() { b.end(context.DeadlineExceeded) }

func (b *budget) release() {
	if b.timer != nil {
		b.timer.Stop()
	}
	b.parent.unhook(&b.hook)
	b.end(context.Canceled)
}
