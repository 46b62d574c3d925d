package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terracecache/terrace/tier"
)

// wrote has a key announced that was written. It waits for nothing.
func (b *link[K, V]) wrote(key K, op busOp) {
	if b != nil && b.out.put(key, op) {
		b.counts.overflows.Add(1)
		b.cache.log.warn("too many keys to announce on the bus; all are announced", "", fmt.Errorf("bus: queue of %d", b.options.Queue))
	}
}

// wroteAll has a Clear announced.
func (b *link[K, V]) wroteAll() {
	if b != nil {
		b.out.putAll()
	}
}

// busTimeout bounds each try to publish.
const busTimeout = tier.DefaultTimeout

// enoughRefusals is after how many tries a message is given up for a shorter one that
// says more, when it is not that the bus cannot be reached.
const enoughRefusals = 3

// lastTries is how many tries a message has at the end of the cache, unless one takes its
// whole time: a connection may have died unnoticed, and Close is not to wait for long.
const lastTries = 3

// publish announces what comes into the outbox, one message after another: each is
// tried until it has arrived, with the same number and the same content, so that it may
// arrive twice but not be taken for one that was missed.
func (b *link[K, V]) publish() {
	defer close(b.flushed)
	beat := time.NewTicker(b.options.Heartbeat)
	defer beat.Stop()
	sequence := uint64(0)
	b.say(busHeartbeat, sequence) // so that others count from the beginning
	for {
		if m, ok := b.next(sequence + 1); ok {
			sequence++
			b.trying.Store(int64(max(1, len(m.keys))))
			if !b.deliver(&m) {
				return // without a bye, so that others notice
			}
			b.trying.Store(0)
			continue
		}
		select {
		case <-b.out.wake:
		case <-beat.C:
			b.say(busHeartbeat, sequence)
		case <-b.closing:
			if b.out.len() == 0 {
				b.say(busBye, sequence)
				return
			}
		case <-b.ctx.Done():
			return
		}
	}
}

// next makes a message of what is in the outbox.
func (b *link[K, V]) next(sequence uint64) (m busMessage, ok bool) {
	keys, all, since, ok := b.out.take(busMostKeys)
	if !ok {
		return m, false
	}
	m = b.message(busKeys, sequence, time.Now().Add(-tier.Now().Sub(since)))
	for key, op := range keys {
		text := b.keys.Text(key)
		if len(text) > busMostText {
			all = true
			break
		}
		m.keys = append(m.keys, busKey{op, text})
	}
	if all {
		m.kind, m.keys = busAll, nil
	}
	return m, true
}

func (b *link[K, V]) message(kind busKind, sequence uint64, at time.Time) busMessage {
	return busMessage{
		kind: kind, publisher: b.id, epoch: b.epoch, sequence: sequence, at: at,
		interval: b.options.Heartbeat, form: b.keys.Form(),
	}
}

// deliver publishes a message, however many tries that takes, until the cache is closed:
// then a few more are made. It reports whether it has arrived.
func (b *link[K, V]) deliver(m *busMessage) bool {
	refusals, lasts := 0, 0
	for failures := 1; ; failures++ {
		last := isClosed(b.closing)
		err := b.send(m)
		if err == nil {
			b.counts.published.Add(1)
			return true
		}
		b.counts.failures.Add(1)
		b.cache.log.warn("bus: publish failed", "", err)
		if last {
			if lasts++; lasts == lastTries || errors.Is(err, context.DeadlineExceeded) {
				return false
			}
		}
		if refusals++; tier.IsOutage(err) {
			refusals = 0
		}
		if refusals >= enoughRefusals && m.kind == busKeys {
			m.kind, m.keys = busAll, nil
		}
		pause := time.NewTimer(min(b.cache.backoff.Wait(failures, draw()), b.options.Heartbeat))
		select {
		case <-pause.C:
		case <-b.again:
		case <-b.closing:
		case <-b.ctx.Done():
		}
		pause.Stop()
		if b.ctx.Err() != nil {
			return false
		}
	}
}

// say publishes what is said again soon, or need not be.
func (b *link[K, V]) say(kind busKind, sequence uint64) {
	m := b.message(kind, sequence, time.Now())
	if err := b.send(&m); err != nil && b.ctx.Err() == nil {
		b.counts.failures.Add(1)
		b.cache.log.warn("bus: publish failed", "", err)
	}
}

// send makes one try.
func (b *link[K, V]) send(m *busMessage) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the bus panicked: %T", p)
		}
	}()
	ctx, cancel := context.WithTimeout(b.ctx, busTimeout)
	defer cancel()
	return b.bus.Publish(ctx, b.options.Channel, m.encode())
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
