package coordinator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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
	defer b.guard()
	now := tier.Now()
	b.mu.Lock()
	b.connected = true
	clear(b.peers)
	b.settling, b.unsettled = now.Add(settlingBeats*b.options.Heartbeat), false
	b.mu.Unlock()
	b.suspect()
	select {
	case b.again <- struct{}{}:
	default:
	}
}

// Lost implements [tier.BusHandler].
func (b listener[K, V]) Lost(why error) {
	defer b.guard()
	b.mu.Lock()
	b.connected = false
	b.mu.Unlock()
	b.gap(why)
}

// Message implements [tier.BusHandler].
func (b listener[K, V]) Message(bytes []byte) {
	defer b.guard()
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
		b.suspect()
		b.noteLag(m.at)
	case busKeys:
		b.invalidateAll(&m)
	}
}

// guard keeps the panic of a store from ending the process. What was to be dropped may
// then still be there.
func (b *link[K, V]) guard() {
	if p := recover(); p != nil {
		b.cache.log.warn("bus: a store panicked", "", &PanicError{Value: p, Stack: debug.Stack()})
		b.suspect()
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
			b.invalidate(key, k.op, m.at)
		}
	}
}

// invalidate takes a key that another process has written out of the tiers in memory.
// To this process it is a write of the key: it fences a load or fill under way, which may
// have read what was there before, and waits for the key's turn, lest such a one that has
// begun to store ends after it. It does not make the next message wait for that.
func (b *link[K, V]) invalidate(key K, op busOp, at time.Time) {
	c := b.cache
	w, hasTurn := c.table.beginWrite(key)
	c.cooldowns.clear(key)
	if hasTurn {
		defer w.end(true)
		b.dropLocal(key, op)
		b.applied(at)
		return
	}
	if op == busDrop || b.shares {
		b.dropLocal(key, op) // without the turn, so that few readers wait for whoever has it
	}
	if !b.waiting.tryEnter() {
		w.end(false)
		b.suspect()
		b.applied(at)
		return
	}
	b.running.Go(func() {
		defer b.waiting.leave()
		hasTurn := false
		defer func() { w.end(hasTurn) }()
		defer b.guard()
		if hasTurn = w.shard.takeTurn(b.ctx, w.record) == nil; hasTurn {
			b.dropLocal(key, op)
			b.applied(at)
		}
	})
}

// dropLocal takes a key out of the tiers in memory, from the bottom up. What was
// expired elsewhere is expired here where no shared tier has it.
func (b *link[K, V]) dropLocal(key K, op busOp) {
	c := b.cache
	now := tier.Now()
	for i := len(c.levels) - 1; i >= 0; i-- {
		l := c.levels[i]
		if !l.local {
			continue
		}
		var err error
		if op == busExpire && !b.shares {
			err = c.expireAt(b.ctx, l, key, now)
		} else {
			err = c.apply(b.ctx, l, key, repeat[V]{at: now}, now)
		}
		if err != nil {
			c.levelFailed(l, "invalidate", err)
			c.repeatLater(b.ctx, i, key, repeat[V]{at: now}, err)
		} else if op != busExpire || b.shares {
			c.settled(l, key)
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
	b.suspect()
}

// suspect has nothing served from now on that the tiers in memory hold: no load or
// fill under way is stored, and what is there is not trusted until it has been cleared,
// which is done by a goroutine. What readers ask for from now on is read from below, or
// loaded, and stored as always; nothing else is.
func (b *link[K, V]) suspect() {
	c := b.cache
	b.mu.Lock()
	defer b.mu.Unlock()
	c.table.fenceAll()
	b.dropped = tier.Now()
	for i, l := range c.levels {
		if l.local {
			c.distrust(i, b.dropped)
			l.repeats.becomeDeletions(b.dropped)
		}
	}
	b.suspicious = true
	if !b.clearing {
		b.clearing = true
		b.running.Go(b.clearUp)
	}
}

// clearUp clears the tiers in memory for as long as they are suspect.
func (b *link[K, V]) clearUp() {
	for {
		b.mu.Lock()
		if b.clearing = b.suspicious; !b.clearing {
			b.mu.Unlock()
			return
		}
		b.suspicious = false
		at := b.dropped
		b.mu.Unlock()
		b.counts.clears.Add(1)
		b.clearLocal(at)
	}
}

// clearLocal clears the tiers in memory, from the bottom up. One that cannot be cleared
// is not trusted until all must be dead that it held.
func (b *link[K, V]) clearLocal(at tier.Instant) {
	c := b.cache
	defer func() {
		if p := recover(); p != nil {
			c.log.warn("bus: a store panicked", "", &PanicError{Value: p, Stack: debug.Stack()})
		}
	}()
	// Whoever has a key's turn may be about to store what the fence came too late for.
	if c.table.settle(b.ctx) != nil {
		return // closed
	}
	for i := len(c.levels) - 1; i >= 0; i-- {
		l := c.levels[i]
		if !l.local || l.clear == nil {
			continue
		}
		if err := l.clear.Clear(context.WithoutCancel(b.ctx)); err != nil {
			c.levelFailed(l, "clear", err)
			continue
		}
		l.repeats.forget(at)
		l.floor.CompareAndSwap(int64(at), noFloor)
		if i == 0 {
			c.retop()
		}
	}
}

// watch notices what nobody tells of: that a publisher is silent, that the bus has been
// lost for long, that publishers were met who had published before.
func (b *link[K, V]) watch() {
	step := b.options.Heartbeat / 2
	if b.options.Clamp > 0 {
		step = max(time.Millisecond, min(step, b.options.Clamp/2))
	}
	tick := time.NewTicker(step)
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
	defer b.guard()
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
	overdue := !b.connected && b.options.Clamp > 0 && now.Sub(b.dropped) >= b.options.Clamp
	b.mu.Unlock()
	switch {
	case vanished:
		b.gap(errBusVanished)
	case unsettled, overdue && b.canReadAgain():
		b.suspect()
	}
}

// canReadAgain reports whether what is dropped could be read from below.
func (b *link[K, V]) canReadAgain() bool {
	for _, l := range b.cache.levels {
		if !l.local && !l.breaker.isOpen() {
			return true
		}
	}
	return !b.shares
}
