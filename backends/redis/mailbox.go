package redis

import (
	"context"
	"sync"

	"github.com/terracecache/terrace/tier"
)

// listener is told what came, one call at a time.
type listener[M any] interface {
	Connected()
	Message(m M)
	Lost(why error)
}

// mailbox keeps what came for a listener until it takes it, up to so many bytes.
type mailbox[M any] struct {
	listener listener[M]
	most     int

	mu     sync.Mutex
	wake   chan struct{} // of one
	events []event[M]
	bytes  int
	up     bool // the last event was not lost
	told   bool // that there is or was a connection, or that there is none
	over   bool // messages are lost until the listener has taken all that waits
}

// event is a call of the listener: a message, or the loss or the return of a connection.
type event[M any] struct {
	kind    eventKind
	message M
	lost    error
	size    int
}

type eventKind byte

const (
	eventConnected eventKind = iota
	eventMessage
	eventLost
)

// eventSize is what an event takes beside its message.
const eventSize = 64

func newMailbox[M any](l listener[M], most int) *mailbox[M] {
	return &mailbox[M]{listener: l, most: most, wake: make(chan struct{}, 1)}
}

// message puts in a message of so many bytes.
func (b *mailbox[M]) message(m M, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	if b.bytes+size+eventSize > b.most && len(b.events) > 0 {
		b.over = true
		b.put(event[M]{kind: eventLost, lost: tier.ErrBusOverrun})
		return
	}
	b.put(event[M]{kind: eventMessage, message: m, size: size})
}

// connected says that messages arrive from now on.
func (b *mailbox[M]) connected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up, b.told = true, true
	if !b.over {
		b.put(event[M]{kind: eventConnected})
	}
}

// lost says that they do not. It is told once, until there is a connection.
func (b *mailbox[M]) lost(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.up && b.told {
		return
	}
	b.up, b.told = false, true
	if !b.over { // else that is known already
		b.over = b.bytes > b.most // connections come and go, and the listener stands still
		b.put(event[M]{kind: eventLost, lost: why})
	}
}

// put is called with the lock held.
func (b *mailbox[M]) put(e event[M]) {
	b.events = append(b.events, e)
	b.bytes += e.size + eventSize
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// next returns what to tell the listener next, or false when there is nothing.
func (b *mailbox[M]) next() (e event[M], ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.events) > 0:
		e = b.events[0]
		b.events[0] = event[M]{}
		b.events = b.events[1:]
		b.bytes -= e.size + eventSize
		return e, true
	case b.over:
		b.over = false
		return event[M]{kind: eventConnected}, b.up
	default:
		return e, false
	}
}

func (b *mailbox[M]) run(ctx context.Context) {
	for {
		e, ok := b.next()
		if !ok {
			select {
			case <-b.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		b.tell(e)
	}
}

func (b *mailbox[M]) tell(e event[M]) {
	switch e.kind {
	case eventLost:
		b.listener.Lost(e.lost)
	case eventMessage:
		b.listener.Message(e.message)
	default:
		b.listener.Connected()
	}
}
