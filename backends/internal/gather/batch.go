package gather

import (
	"context"
	"slices"
	"time"

	"github.com/terracecache/terrace/backends/internal/gate"
)

// batch is the reads of one round trip. All but the answers is guarded by the
// gatherer's mutex until the batch departs; what comes after says so.
type batch[V any] struct {
	begun  time.Time
	lists  lists[V]
	called bool // somebody is about to take it
	ctx    tripContext
	cancel context.CancelFunc
	intact bool // the fetch has returned, so that nobody else holds the lists

	// These change under the mutex until the end.
	waiting   int  // callers
	deserted  bool // none is left, and the round trip is under way
	hasLanded bool

	// A lone read needs no more memory than this.
	oneKey    [1]string
	oneShared [1]bool
	oneAnswer [1]Answer[V]
	oneWaiter [1]*waiter[V]
}

// lists are what a batch has of each key and each caller. Callers take nothing of them, so
// that they are free for another batch as soon as all have been woken.
type lists[V any] struct {
	keys    []string
	shared  []bool // which keys several reads ask for
	answers []Answer[V]
	waiters []*waiter[V] // nil in the place of one who has left
}

// emptied returns the lists for another batch. They hold on to nothing.
func (l lists[V]) emptied() lists[V] {
	clear(l.keys)
	clear(l.answers)
	clear(l.waiters)
	return lists[V]{keys: l.keys[:0], shared: l.shared[:0], answers: l.answers[:0], waiters: l.waiters[:0]}
}

// newBatch returns a batch with the lists, or where these are none with those for a lone
// read.
func newBatch[V any](first context.Context, l lists[V]) *batch[V] {
	b := &batch[V]{begun: time.Now(), lists: l}
	b.ctx.values = valuesOf(first)
	if l.keys == nil {
		b.lists = lists[V]{keys: b.oneKey[:0], shared: b.oneShared[:0], answers: b.oneAnswer[:0], waiters: b.oneWaiter[:0]}
	}
	return b
}

// valued is a context that may be used again when the read is over, and whose values are
// those of another. The coordinator's are.
type valued interface {
	// Values returns the other context.
	Values() context.Context
}

// valuesOf returns a context that a round trip may keep for as long as it takes.
func valuesOf(ctx context.Context) context.Context {
	if v, ok := ctx.(valued); ok {
		return v.Values()
	}
	return ctx
}

// add returns the place of the key, for a caller who has a deadline if he is limited.
func (b *batch[V]) add(deadline time.Time, limited bool, key string, places *index) int {
	b.waiting++
	if !limited {
		b.ctx.unlimited = true
	} else if deadline.After(b.ctx.deadline) {
		b.ctx.deadline = deadline
	}
	l := &b.lists
	place := places.find(l.keys, key)
	if place < len(l.keys) {
		l.shared[place] = true
		return place
	}
	l.keys, l.shared = append(l.keys, key), append(l.shared, false)
	return place
}

// depart makes the context of the round trip. It has the values of the first caller's,
// for a client that traces, and ends when all callers have left; that is what its
// deadline comes to.
func (b *batch[V]) depart() {
	b.answer()
	b.ctx.Context, b.cancel = context.WithCancel(context.Background())
}

// tripContext has the values of one context and the deadline of another. It needs no
// timer for that, since somebody else will end it.
type tripContext struct {
	context.Context
	values    context.Context
	deadline  time.Time // the latest of the callers'
	unlimited bool      // a caller has none
}

func (c *tripContext) Deadline() (time.Time, bool) { return c.deadline, !c.unlimited }

func (c *tripContext) Value(key any) any {
	// Ours comes first: it tells what is derived from it that it can be cancelled.
	if value := c.Context.Value(key); value != nil {
		return value
	}
	return c.values.Value(key)
}

// answer makes room for the answers, and returns them.
func (b *batch[V]) answer() []Answer[V] {
	l := &b.lists
	l.answers = slices.Grow(l.answers[:0], len(l.keys))[:len(l.keys)]
	return l.answers
}

// fail answers all with the error.
func (b *batch[V]) fail(err error) {
	answers := b.answer()
	for i := range answers {
		answers[i] = Answer[V]{Err: err}
	}
}

// wake gives those who wait their answers. It is called without the gatherer's mutex:
// nobody leaves any more.
func (b *batch[V]) wake() {
	l := &b.lists
	for _, w := range l.waiters {
		if w != nil {
			w.answer, w.shared = l.answers[w.key], l.shared[w.key]
			w.woken <- true
		}
	}
}

// visit visits those who wait for the batch, and reports whether it has to again. It is
// called with the gatherer's mutex.
func (b *batch[V]) visit() (again bool) {
	for _, w := range b.lists.waiters {
		again = w != nil && w.visit() || again
	}
	return again
}

// trip makes the round trip of a batch.
func (g *Gatherer[V]) trip(b *batch[V]) {
	entered, fetched := false, false
	defer func() {
		if entered {
			g.gate.Leave()
			if p := recover(); p != nil {
				b.fail(gate.Panicked(p))
			} else if !fetched {
				b.fail(gate.ErrGoexit)
			}
		}
		b.cancel()
		g.mu.Lock()
		g.landed(b)
		g.mu.Unlock()
		b.wake()
	}()
	if err := g.gate.Enter(&b.ctx); err != nil {
		b.fail(err)
		return
	}
	entered = true
	g.fetch(&b.ctx, b.lists.keys, b.lists.answers)
	fetched, b.intact = true, true
}
