package gather

import "context"

// waiter is who waits for an answer. It is used again and again: channels and what
// watches a context are most of what a read would allocate.
type waiter[V any] struct {
	// woken is sent true when there is an answer, and false at the end of each context that
	// is heeded, each once at most.
	woken  chan bool
	key    int // its place in the batch
	place  int // among those who wait for the batch
	answer Answer[V]
	shared bool

	interrupts interruptible   // sends false at its end; nil where it does not
	ended      <-chan struct{} // of the context whose end has to be noticed otherwise; nil where none has
	visited    bool            // the gatherer looks whether ended is closed; of its mutex
}

// interruptible is a context that can wake who waits for its end without a channel of its
// own. The coordinator's are.
type interruptible interface {
	// Interrupt has false sent to the channel at the context's end, if there is room in
	// it. A context that it returns too has to be heeded beside. It reports false for ok
	// where the context cannot do that now, and then nothing is sent.
	Interrupt(c chan<- bool) (beside context.Context, ok bool)

	// Uninterrupt ends what Interrupt began: nothing is sent from now on.
	Uninterrupt()
}

// heed has the waiter woken at the context's end, as far as the context does that itself.
func (w *waiter[V]) heed(ctx context.Context) {
	if i, ok := ctx.(interruptible); ok {
		if beside, ok := i.Interrupt(w.woken); ok {
			w.interrupts, ctx = i, beside
		}
	}
	if ctx != nil {
		w.ended = ctx.Done()
	}
}

// wait returns true when there is an answer, or false when the context has ended.
func (w *waiter[V]) wait(visited bool) bool {
	if visited || w.ended == nil {
		return <-w.woken
	}
	select {
	case landed := <-w.woken:
		return landed
	case <-w.ended:
		return false
	}
}

// visit wakes the waiter if its context has ended, and reports whether it has to be visited
// again. It is called with the gatherer's mutex, before the batch has landed, and so calls
// nothing of the context, which may be anybody's.
func (w *waiter[V]) visit() (again bool) {
	if !w.visited {
		return false
	}
	select {
	case <-w.ended:
		w.visited = false
		w.woken <- false // there is room: see waiter
	default:
	}
	return w.visited
}

// waitAnyway waits for the answer that is about to come.
func (w *waiter[V]) waitAnyway() {
	for !<-w.woken {
	}
}

func (g *Gatherer[V]) waiter() *waiter[V] {
	if w, ok := g.waiters.Get().(*waiter[V]); ok {
		return w
	}
	return &waiter[V]{woken: make(chan bool, 3)} // one answer, and the ends of two contexts
}

// free leaves a waiter to another read. Nobody knows of it any more.
func (g *Gatherer[V]) free(w *waiter[V]) {
	if w.interrupts != nil {
		w.interrupts.Uninterrupt()
	}
	for len(w.woken) > 0 {
		<-w.woken
	}
	w.interrupts, w.ended, w.visited, w.answer = nil, nil, false, Answer[V]{}
	g.waiters.Put(w)
}
