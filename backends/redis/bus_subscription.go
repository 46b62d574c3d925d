package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/tier"
)

// subscription keeps a connection that listens to one channel. One goroutine reads
// what comes, one pings, and one calls the handler, so that neither a slow handler nor
// a slow server keeps the other from being noticed.
type subscription struct {
	bus     *Bus
	channel string
	mailbox *mailbox
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

func newSubscription(b *Bus, channel string, h tier.BusHandler) *subscription {
	s := &subscription{bus: b, channel: channel, mailbox: newMailbox(h, b.options.Buffer)}
	s.ctx, s.stop = context.WithCancel(b.ctx)
	return s
}

func (s *subscription) start() {
	s.running.Go(s.run)
	s.running.Go(func() { s.mailbox.run(s.ctx) })
}

func (s *subscription) close() {
	s.stop()
	s.running.Wait()
}

// The wait between two tries to connect.
const (
	firstReconnect = 20 * time.Millisecond
	lastReconnect  = 2 * time.Second
)

// run connects, listens until the connection is lost, and connects again.
func (s *subscription) run() {
	wait := firstReconnect
	for {
		connected, err := s.listen()
		if s.ctx.Err() != nil {
			return
		}
		if connected {
			wait = firstReconnect
		}
		s.mailbox.lost(fmt.Errorf("terrace/redis: subscription lost: %w", err))
		pause := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-pause.C:
		case <-s.ctx.Done():
			pause.Stop()
			return
		}
		wait = min(2*wait, lastReconnect)
	}
}

// noDial has ended. go-redis, where a call with it finds the connection lost, can then not
// make it again, which takes its time and would not be told; reading and writing ask a
// context for its deadline only.
var noDial = func() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}()

// listen brings messages to the mailbox for as long as one connection lives.
func (s *subscription) listen() (connected bool, err error) {
	sub, err := s.bus.connect(s.ctx, s.channel)
	if err != nil {
		return false, err
	}
	// Closing is what ends a read.
	ctx, cancel := context.WithCancel(s.ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() {
		<-ctx.Done()
		_ = sub.Close()
	})
	helpers.Go(func() { s.ping(ctx, cancel, sub) })
	defer helpers.Wait()
	defer cancel()
	for {
		// A read that has timed out may have taken half of a message, so it is the last.
		m, err := sub.ReceiveTimeout(noDial, 3*s.bus.options.Ping)
		if err != nil {
			if isTimeout(err) {
				err = errSilent
			}
			return connected, err
		}
		switch m := m.(type) {
		case *redis.Message:
			s.mailbox.message([]byte(m.Payload))
		case *redis.Subscription:
			if connected || m.Kind != "subscribe" && m.Kind != "ssubscribe" {
				return connected, errMoved
			}
			connected = true
			s.mailbox.connected()
		}
	}
}

// ping keeps the connection from being silent. If it cannot be written to it is lost.
func (s *subscription) ping(ctx context.Context, lost func(), sub *redis.PubSub) {
	tick := time.NewTicker(s.bus.options.Ping)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := sub.Ping(noDial); err != nil {
				lost()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// mailbox keeps what came for a handler until it takes it, up to so many bytes.
type mailbox struct {
	handler tier.BusHandler
	most    int

	mu     sync.Mutex
	wake   chan struct{} // of one
	events []event
	bytes  int
	up     bool // the last event was not lost
	told   bool // that there is or was a connection, or that there is none
	over   bool // messages are lost until the handler has taken all that waits
}

// event is a call of the handler: a message, or the loss or the return of a connection.
type event struct {
	message []byte
	lost    error
}

// eventSize is what an event takes beside its message.
const eventSize = 64

func newMailbox(h tier.BusHandler, most int) *mailbox {
	return &mailbox{handler: h, most: most, wake: make(chan struct{}, 1)}
}

func (b *mailbox) message(m []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	if b.bytes+len(m)+eventSize > b.most && len(b.events) > 0 {
		b.over = true
		b.put(event{lost: tier.ErrBusOverrun})
		return
	}
	b.put(event{message: m})
}

// connected says that messages arrive from now on.
func (b *mailbox) connected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up, b.told = true, true
	if !b.over {
		b.put(event{})
	}
}

// lost says that they do not. It is told once, until there is a connection.
func (b *mailbox) lost(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.up && b.told {
		return
	}
	b.up, b.told = false, true
	if !b.over { // else that is known already
		b.over = b.bytes > b.most // connections come and go, and the handler stands still
		b.put(event{lost: why})
	}
}

// put is called with the lock held.
func (b *mailbox) put(e event) {
	b.events = append(b.events, e)
	b.bytes += len(e.message) + eventSize
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// next returns what to tell the handler next, or false when there is nothing.
func (b *mailbox) next() (e event, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.events) > 0:
		e = b.events[0]
		b.events[0] = event{}
		b.events = b.events[1:]
		b.bytes -= len(e.message) + eventSize
		return e, true
	case b.over:
		b.over = false
		return event{}, b.up
	default:
		return event{}, false
	}
}

func (b *mailbox) run(ctx context.Context) {
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

func (b *mailbox) tell(e event) {
	switch {
	case e.lost != nil:
		b.handler.Lost(e.lost)
	case e.message != nil:
		b.handler.Message(e.message)
	default:
		b.handler.Connected()
	}
}
