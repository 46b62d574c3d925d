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
	begun     time.Time
	keys      []string
	shared    []bool // which keys several reads ask for
	answers   []Answer[V]
	called    bool // somebody is about to take it
	values    context.Context
	deadline  time.Time // the latest of the callers'
	unlimited bool      // a caller has none

	ctx    context.Context
	cancel context.CancelFunc

	// These change under the mutex until the end.
	waiting   int  // callers
	deserted  bool // none is left, and the round trip is under way
	hasLanded bool

	landed chan struct{} // is closed when the answers are there
}

var errGoexit = errors.New("the client ended the goroutine of its call")

func newBatch[V any](first context.Context, size int) *batch[V] {
	return &batch[V]{
		begun:  time.Now(),
		keys:   make([]string, 0, size),
		shared: make([]bool, 0, size),
		values: first,
		landed: make(chan struct{}),
	}
}

// add returns the place of the key.
func (b *batch[V]) add(ctx context.Context, key string, places *index) int {
	b.waiting++
	if at, limited := ctx.Deadline(); !limited {
		b.unlimited = true
	} else if at.After(b.deadline) {
		b.deadline = at
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
	b.answers = make([]Answer[V], len(b.keys))
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(b.values))
	if !b.unlimited {
		b.ctx = limited{b.ctx, b.deadline}
	}
}

// limited is a context that tells a deadline, which a client can give to its socket,
// and needs no timer, since somebody else will end it.
type limited struct {
	context.Context
	deadline time.Time
}

func (c limited) Deadline() (time.Time, bool) { return c.deadline, true }

// fail answers all with the error.
func (b *batch[V]) fail(err error) {
	if b.answers == nil {
		b.answers = make([]Answer[V], len(b.keys))
	}
	for i := range b.answers {
		b.answers[i] = Answer[V]{Err: err}
	}
}

// land hands the answers out. It is called with the gatherer's mutex.
func (b *batch[V]) land() {
	b.hasLanded = true
	close(b.landed)
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
		b.land()
		g.mu.Unlock()
	}()
	if err := g.gate.Enter(b.ctx); err != nil {
		b.fail(err)
		return
	}
	entered = true
	g.fetch(b.ctx, b.keys, b.answers)
	fetched = true
}
