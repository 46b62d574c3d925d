package gather

import "context"

// waiter is who waits for an answer. It is used again and again: channels and what
// watches a context are most of what a read would allocate.
type waiter struct {
	// woken is sent true when there is an answer, and false at a context's end, each once
	// at most.
	woken chan bool
	place int // among those of the batch
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

// wait returns true when there is an answer, or false when the context has ended.
func (w *waiter) wait(ctx context.Context) bool {
	if i, ok := ctx.(interruptible); ok {
		if beside, ok := i.Interrupt(w.woken); ok {
			defer i.Uninterrupt()
			if beside == nil {
				return <-w.woken
			}
			ctx = beside
		}
	}
	select {
	case landed := <-w.woken:
		return landed
	case <-ctx.Done():
		return false
	}
}

// waitAnyway waits for the answer that is about to come.
func (w *waiter) waitAnyway() {
	for !<-w.woken {
	}
}

func (g *Gatherer[V]) waiter() *waiter {
	if w, ok := g.waiters.Get().(*waiter); ok {
		return w
	}
	return &waiter{woken: make(chan bool, 2)}
}

// free leaves a waiter to another read. Nobody knows of it any more.
func (g *Gatherer[V]) free(w *waiter) {
	select {
	case <-w.woken:
	default:
	}
	g.waiters.Put(w)
}
