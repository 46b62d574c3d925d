package coordinator

import (
	"errors"
	"fmt"
	"time"

	"github.com/terracecache/terrace/tier"
)

// peer is another cache that publishes on the channel.
type peer struct {
	epoch    uint64
	sequence uint64 // of its last message that announced writes
	interval time.Duration
	seen     tier.Instant
}

const (
	// mostPeers bounds the publishers that are counted along with. What comes from
	// another one is always taken for the rest of something that was missed.
	mostPeers = 4096
	// missedBeats is after how many of its own heartbeats a silent publisher is taken
	// for vanished, perhaps with something that it had not said.
	missedBeats = 3
	// settlingBeats is for how many heartbeats after there is a connection publishers
	// may turn up that have published before. Each could be a gap; together they are one,
	// at the end.
	settlingBeats = 2
)

var (
	errBusMissed   = errors.New("messages of a publisher are missing")
	errBusRestart  = errors.New("a publisher has begun anew")
	errBusVanished = errors.New("a publisher has vanished")
	errBusCrowd    = fmt.Errorf("more than %d publishers", mostPeers)
	errBusForm     = errors.New("keys of another type; give caches of different keys different names")
)

// listener is what the bus tells of.
type listener[K comparable, V any] struct{ *link[K, V] }

// Connected implements [tier.BusHandler].
func (b listener[K, V]) Connected() {
	defer b.above.guard()
	now := tier.Now()
	b.mu.Lock()
	clear(b.peers)
	b.settling, b.unsettled = now.Add(settlingBeats*b.options.Heartbeat), false
	b.mu.Unlock()
	b.above.suspect() // before the connection can be seen
	b.mu.Lock()
	b.connected = true
	b.mu.Unlock()
	select {
	case b.again <- struct{}{}:
	default:
	}
}

// Lost implements [tier.BusHandler].
func (b listener[K, V]) Lost(why error) {
	defer b.above.guard()
	b.gap(why) // before the loss can be seen
	b.mu.Lock()
	b.connected = false
	b.mu.Unlock()
}

// Message implements [tier.BusHandler].
func (b listener[K, V]) Message(bytes []byte) {
	defer b.above.guard()
	b.counts.received.Add(1)
	m, err := decodeBusMessage(bytes)
	if err != nil {
		b.gap(err)
		return
	}
	if m.publisher == b.id {
		b.counts.own.Add(1)
		return
	}
	if err := b.count(&m); err != nil {
		b.gap(err)
	}
	switch m.kind {
	case busAll:
		b.above.suspect()
		b.noteLag(m.at)
	case busKeys:
		b.invalidateAll(&m)
	}
}

// count counts along with the message's publisher, and returns why something may have
// been missed.
func (b *link[K, V]) count(m *busMessage) error {
	now := tier.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	before := m.sequence // how many messages there were before this one
	if m.kind == busKeys || m.kind == busAll {
		before--
	}
	p := b.peers[m.publisher]
	if m.kind == busBye {
		delete(b.peers, m.publisher)
	}
	if p == nil {
		switch {
		case m.kind == busBye:
		case len(b.peers) >= mostPeers:
			return errBusCrowd
		default:
			b.peers[m.publisher] = &peer{m.epoch, m.sequence, m.interval, now}
		}
		switch {
		case before == 0:
			return nil
		case now < b.settling:
			b.unsettled = true
			return nil
		default:
			return errBusMissed
		}
	}
	p.seen, p.interval = now, m.interval
	switch {
	case m.epoch != p.epoch:
		p.epoch, p.sequence = m.epoch, m.sequence
		return errBusRestart
	case before > p.sequence && m.sequence > p.sequence: // else it is one that came before
		p.sequence = m.sequence
		return errBusMissed
	default:
		p.sequence = max(p.sequence, m.sequence)
		return nil
	}
}

// invalidateAll drops the keys of a message.
func (b *link[K, V]) invalidateAll(m *busMessage) {
	if m.form != b.keys.Form() {
		b.gap(errBusForm)
		return
	}
	for _, k := range m.keys {
		key, err := b.keys.Key(k.text)
		if err != nil { // no key of this cache's type, but perhaps of what was meant
			b.gap(err)
			continue
		}
		if b.cache.table.keys.Storable(key) {
			b.above.invalidate(key, k.op, func() { b.applied(m.at) })
		}
	}
}

func (b *link[K, V]) applied(at time.Time) {
	b.counts.applied.Add(1)
	b.noteLag(at)
}

func (b *link[K, V]) noteLag(at time.Time) {
	lag := int64(max(0, time.Since(at)))
	b.counts.lag.Store(lag)
	for {
		longest := b.counts.maxLag.Load()
		if lag <= longest || b.counts.maxLag.CompareAndSwap(longest, lag) {
			return
		}
	}
}

// gap notes that a message may have been missed.
func (b *link[K, V]) gap(why error) {
	b.counts.gaps.Add(1)
	b.cache.log.warn("bus: messages may have been missed; what the tiers in memory hold is dropped", "", why)
	b.above.suspect()
}

// watch notices what nobody tells of: that a publisher is silent, that the bus has been
// lost for long, that publishers were met who had published before.
func (b *link[K, V]) watch() {
	tick := time.NewTicker(b.above.clampStep(b.options.Heartbeat / 2))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.look(tier.Now())
		case <-b.ctx.Done():
			return
		}
	}
}

func (b *link[K, V]) look(now tier.Instant) {
	defer b.above.guard()
	b.mu.Lock()
	vanished := false
	for id, p := range b.peers {
		if b.connected && now.Sub(p.seen) > missedBeats*p.interval {
			delete(b.peers, id)
			vanished = true
		}
	}
	unsettled := b.unsettled && now >= b.settling
	if unsettled {
		b.unsettled = false
	}
	lost := !b.connected
	b.mu.Unlock()
	switch {
	case vanished:
		b.gap(errBusVanished)
	case unsettled:
		b.above.suspect()
	case lost:
		b.above.unheard(now)
	}
}
