package coordinator

import "sync"

// ending is the end of a context of our own, which makes a channel only for who asks
// for one. It is the part of such contexts that package context has no lean form of.
type ending struct {
	mu    sync.Mutex
	done  chan struct{}
	err   error // when it has ended
	hooks *hook
	wake  chan<- bool // is sent false at the end; nil where nobody waits so
}

// hook is what happens at a context's end: a function is called, or a child ends. It
// is in the list of its context until it is taken out or that has ended.
type hook struct {
	call       func()
	child      *ending
	in         bool
	prev, next *hook
}

// Done implements [context.Context].
func (e *ending) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		e.done = make(chan struct{})
		if e.err != nil {
			close(e.done)
		}
	}
	return e.done
}

// Err implements [context.Context].
func (e *ending) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// isUntouched reports whether the context has not ended, and nobody waits for that.
func (e *ending) isUntouched() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err == nil && e.done == nil && e.hooks == nil && e.wake == nil
}

// interrupt has false sent at the end, where nobody else wants that now.
func (e *ending) interrupt(c chan<- bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || e.wake != nil {
		return false
	}
	e.wake = c
	return true
}

// Uninterrupt ends what interrupt began.
func (e *ending) Uninterrupt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wake = nil
}

// AfterFunc is what package context looks for in a context that is not its own: with
// it a context derived from this one needs no goroutine.
func (e *ending) AfterFunc(call func()) (stop func() bool) {
	h := &hook{call: call}
	if !e.hook(h) {
		go call()
	}
	return func() bool { return e.unhook(h) }
}

// hook adds to the list, unless the context has ended.
func (e *ending) hook(h *hook) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return false
	}
	if h.next = e.hooks; h.next != nil {
		h.next.prev = h
	}
	e.hooks = h
	h.in = true
	return true
}

// unhook takes out of the list, and reports whether it was in there.
func (e *ending) unhook(h *hook) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.in {
		return false
	}
	h.in = false
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		e.hooks = h.next
	}
	if h.next != nil {
		h.next.prev = h.prev
	}
	return true
}

// end ends the context, once, and what was derived from it.
func (e *ending) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	e.err = err
	if e.done != nil {
		close(e.done)
	}
	if e.wake != nil {
		select {
		case e.wake <- false:
		default:
		}
	}
	for h := e.hooks; h != nil; h = h.next {
		h.in = false
		if h.child != nil {
			h.child.end(err)
		} else {
			go h.call()
		}
	}
	e.hooks = nil
}
