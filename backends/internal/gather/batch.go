package gather

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// batch is the reads of one round trip. All but the answers is guarded by the
// gatherer's mutex until the batch departs; what comes after says so.
type batch[V any] struct {
	begun   time.Time
	keys    []string
	shared  []bool // which keys several reads ask for
	answers []Answer[V]
	called  bool // somebody is about to take it
	ctx     tripContext
	cancel  context.CancelFunc

	// These change under the mutex until the end.
	waiting   int  // callers
	deserted  bool // none is left, and the round trip is under way
	hasLanded bool

	waiters []*waiter // nil in the place of one who has left

	// A lone read needs no more memory than this.
	oneKey    [1]string
	oneShared [1]bool
	oneAnswer [1]Answer[V]
	oneWaiter [1]*waiter
}

var errGoexit = errors.New("the client ended the goroutine of its call")

func newBatch[V any](first context.Context, size int) *batch[V] {
	b := &batch[V]{begun: time.Now()}
	b.ctx.values = valuesOf(first)
	if size > 1 {
		b.keys, b.shared, b.waiters = make([]string, 0, size), make([]bool, 0, size), make([]*waiter, 0, size)
	} else {
		b.keys, b.shared, b.waiters = b.oneKey[:0], b.oneShared[:0], b.oneWaiter[:0]
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
	place := places.find(b.keys, key)
	if place < len(b.keys) {
		b.shared[place] = true
		return place
	}
	b.keys, b.shared = append(b.keys, key), append(b.shared, false)
	return place
}

// depart makes the context of the round trip. It has the values of the first caller's,
// for a client that traces, and ends when all callers have left; that is what its
// deadline comes to.
func (b *batch[V]) depart() {
	if n := len(b.keys); n == 1 {
		b.answers = b.oneAnswer[:]
	} else {
		b.answers = make([]Answer[V], n)
	}
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

// fail answers all with the error.
func (b *batch[V]) fail(err error) {
	if b.answers == nil {
		b.answers = make([]Answer[V], len(b.keys))
	}
	for i := range b.answers {
		b.answers[i] = Answer[V]{Err: err}
	}
}

// wake tells those who wait that the batch has landed. It is called without the gatherer's
// mutex: nobody leaves any more.
func (b *batch[V]) wake() {
	for _, w := range b.waiters {
		if w != nil {
			w.woken <- true
		}
	}
}

// visit visits those who wait for the batch, and reports whether it has to again. It is
// called with the gatherer's mutex.
func (b *batch[V]) visit() (again bool) {
	for _, w := range b.waiters {
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
				b.fail(fmt.Errorf("the client panicked: %v", p))
			} else if !fetched {
				b.fail(errGoexit)
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
	g.fetch(&b.ctx, b.keys, b.answers)
	fetched = true
}
