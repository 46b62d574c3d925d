package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/terracecache/terrace/tier"
)

// BusHub is a messaging system inside the process, for tests of what is built on a
// [tier.Bus]. It loses, doubles and changes messages on command. All methods may be
// called concurrently.
type BusHub struct {
	mu     sync.Mutex
	buses  map[*HubBus]struct{}
	meddle func(channel string, message []byte) [][]byte
	isCut  bool // and so are buses that are opened meanwhile
}

// NewBusHub returns a hub that works.
func NewBusHub() *BusHub { return &BusHub{buses: make(map[*HubBus]struct{})} }

// Open returns a bus that is connected to the hub.
func (h *BusHub) Open() *HubBus {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := &HubBus{hub: h, subs: make(map[*hubSubscription]struct{}), isCut: h.isCut}
	h.buses[b] = struct{}{}
	return b
}

// Meddle has f say what arrives in place of each message from now on, without anybody's
// being told: nothing, the message twice, an older one. f must not call the hub. Nil:
// the message arrives.
func (h *BusHub) Meddle(f func(channel string, message []byte) [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.meddle = f
}

// Cut disconnects all buses, as [HubBus.Cut] does.
func (h *BusHub) Cut() { h.each(true, (*HubBus).cut) }

// Restore connects all buses again.
func (h *BusHub) Restore() { h.each(false, (*HubBus).restore) }

func (h *BusHub) each(isCut bool, f func(*HubBus)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isCut = isCut
	for b := range h.buses {
		f(b)
	}
}

// HubBus is a [tier.Bus] over a [BusHub]. Its fields are guarded by the hub's mu.
type HubBus struct {
	hub    *BusHub
	subs   map[*hubSubscription]struct{}
	isCut  bool
	closed bool
}

var errHubCut = errors.New("storetest: the bus is cut off")

// Cut disconnects the bus: Publish fails, and its subscribers are told that they lose
// messages.
func (b *HubBus) Cut() {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	b.cut()
}

// Restore connects it again.
func (b *HubBus) Restore() {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	b.restore()
}

func (b *HubBus) cut() {
	if b.isCut {
		return
	}
	b.isCut = true
	for s := range b.subs {
		s.put(func(h tier.BusHandler) { h.Lost(errHubCut) })
	}
}

func (b *HubBus) restore() {
	if !b.isCut {
		return
	}
	b.isCut = false
	for s := range b.subs {
		s.put(tier.BusHandler.Connected)
	}
}

// Publish implements [tier.Bus].
func (b *HubBus) Publish(ctx context.Context, channel string, message []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h := b.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case b.closed:
		return tier.ErrClosed
	case b.isCut:
		return fmt.Errorf("publish: %w", errHubCut)
	}
	messages := [][]byte{message}
	if h.meddle != nil {
		messages = h.meddle(channel, message)
	}
	for _, m := range messages {
		for to := range h.buses {
			if to.isCut {
				continue
			}
			for s := range to.subs {
				if s.channel == channel {
					s.deliver(append([]byte(nil), m...))
				}
			}
		}
	}
	return nil
}

// Subscribe implements [tier.Bus].
func (b *HubBus) Subscribe(channel string, handler tier.BusHandler) (unsubscribe func(), err error) {
	h := b.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.closed {
		return nil, tier.ErrClosed
	}
	s := &hubSubscription{channel, newTeller(handler)}
	b.subs[s] = struct{}{}
	if !b.isCut {
		s.put(tier.BusHandler.Connected)
	}
	return func() {
		h.mu.Lock()
		delete(b.subs, s)
		h.mu.Unlock()
		s.close()
	}, nil
}

// Close implements [tier.Bus].
func (b *HubBus) Close() error {
	h := b.hub
	h.mu.Lock()
	b.closed = true
	subs := b.subs
	b.subs = make(map[*hubSubscription]struct{})
	delete(h.buses, b)
	h.mu.Unlock()
	for s := range subs {
		s.close()
	}
	return nil
}

// hubSubscription is a handler's subscription to a channel.
type hubSubscription struct {
	channel string
	*teller[tier.BusHandler]
}

func (s *hubSubscription) deliver(message []byte) {
	s.send(func(h tier.BusHandler) { h.Message(message) })
}
