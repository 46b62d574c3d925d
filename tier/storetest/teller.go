package storetest

import (
	"sync"

	"github.com/terracecache/terrace/tier"
)

// teller calls a handler from a goroutine of its own, one call at a time, in order.
type teller[H interface {
	Connected()
	Lost(why error)
}] struct {
	handler H
	wake    chan struct{} // of one
	ended   chan struct{}

	mu      sync.Mutex
	waiting []func(H)
	overrun bool // messages are lost until all that wait have been taken
	closed  bool
}

// tellerBuffer is how many messages wait for a handler at most.
const tellerBuffer = 1024

func newTeller[H interface {
	Connected()
	Lost(why error)
}](handler H) *teller[H] {
	t := &teller[H]{handler: handler, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go t.run()
	return t
}

// send has the handler told of a message, or that messages are lost.
func (t *teller[H]) send(call func(H)) {
	t.mu.Lock()
	full := len(t.waiting) >= tellerBuffer
	lost := t.overrun
	t.overrun = t.overrun || full
	t.mu.Unlock()
	switch {
	case lost:
	case full:
		t.put(func(h H) { h.Lost(tier.ErrBusOverrun) })
	default:
		t.put(call)
	}
}

// put has the handler called in any case.
func (t *teller[H]) put(call func(H)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, call)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *teller[H]) take() (call func(H), closed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, true
	case len(t.waiting) > 0:
		call = t.waiting[0]
		t.waiting = t.waiting[1:]
		return call, false
	case t.overrun:
		t.overrun = false
		return func(h H) { h.Connected() }, false
	default:
		return nil, false
	}
}

func (t *teller[H]) run() {
	defer close(t.ended)
	for {
		switch call, closed := t.take(); {
		case closed:
			return
		case call != nil:
			call(t.handler)
		default:
			<-t.wake
		}
	}
}

func (t *teller[H]) close() {
	t.mu.Lock()
	t.closed = true
	select {
	case t.wake <- struct{}{}:
	default:
	}
	t.mu.Unlock()
	<-t.ended
}
