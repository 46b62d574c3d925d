package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/tier"
)

// origin is what the cache stands in front of: it takes its time for each value and
// counts who asks. It never fails and has no limit of its own, unless its model says
// otherwise.
type origin struct {
	latency time.Duration
	filler  []byte      // what a value has behind its stamp
	model   originModel // how it differs from that; nil: not at all

	calls   atomic.Int64
	running atomic.Int64
	peak    atomic.Int64
	marked  atomic.Int64 // when the count began, as an Instant

	interval time.Duration  // of over
	over     []atomic.Int64 // calls in each interval since the mark
}

// intervals is into how many parts the calls of a row are counted.
const intervals = 20

// countOver counts calls in parts of the length too, from the next mark. It must be
// called before any load.
func (o *origin) countOver(length time.Duration) {
	o.over = make([]atomic.Int64, intervals)
	o.interval = max(1, length/intervals)
}

// callsOver returns the calls of each part.
func (o *origin) callsOver() []int64 {
	var calls []int64
	for i := range o.over {
		calls = append(calls, o.over[i].Load())
	}
	return calls
}

// count counts a call that begins.
func (o *origin) count(began tier.Instant) {
	o.calls.Add(1)
	if marked := tier.Instant(o.marked.Load()); o.interval > 0 && marked > 0 {
		if i := began.Sub(marked) / o.interval; i >= 0 && int(i) < len(o.over) {
			o.over[i].Add(1)
		}
	}
}

// A value begins with a stamp: when its load began, as an Instant, and a sum of its
// key. Whoever reads it through the tiers can tell its age and whose it is.
const leastValue = 16

var keySums = crc64.MakeTable(crc64.ECMA)

func keySum(key string) uint64 { return crc64.Checksum([]byte(key), keySums) }

func newOrigin(latency time.Duration, valueSize int) *origin {
	o := &origin{latency: latency, filler: make([]byte, valueSize-leastValue)}
	_, _ = rand.NewChaCha8([32]byte{}).Read(o.filler) // it does not fail; nothing can compress it
	return o
}

// load is the cache's loader.
func (o *origin) load(ctx context.Context, key string) ([]byte, error) {
	began := tier.Now()
	o.count(began)
	defer o.running.Add(-1)
	running := o.running.Add(1)
	if o.model != nil {
		return o.model.load(ctx, o, key, began, running)
	}
	raise(&o.peak, running)
	if err := pause(ctx, o.latency); err != nil {
		return nil, err
	}
	return o.value(key, began), nil
}

// pause waits, or returns the context's error when that ends.
func pause(ctx context.Context, d time.Duration) error {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *origin) value(key string, at tier.Instant) []byte { return stamped(key, at, o.filler) }

// stamped returns what follows behind the stamp of a value of the key.
func stamped(key string, at tier.Instant, follows []byte) []byte {
	v := make([]byte, 0, leastValue+len(follows))
	v = binary.BigEndian.AppendUint64(v, uint64(at))
	v = binary.BigEndian.AppendUint64(v, keySum(key))
	return append(v, follows...)
}

// age returns how old the value is, or an error when it is not one of the key's.
func age(key string, value []byte) (time.Duration, error) {
	if len(value) < leastValue || binary.BigEndian.Uint64(value[8:]) != keySum(key) {
		return 0, fmt.Errorf("key %q was answered with a value that is not its own", key)
	}
	return tier.Now().Sub(tier.Instant(binary.BigEndian.Uint64(value))), nil
}

// mark begins a new count: calls from now on, and the peak from what runs now.
func (o *origin) mark() {
	o.marked.Store(int64(tier.Now()))
	o.calls.Store(0)
	for i := range o.over {
		o.over[i].Store(0)
	}
	o.peak.Store(o.running.Load())
}

// raise makes m at least n.
func raise(m *atomic.Int64, n int64) {
	for {
		now := m.Load()
		if n <= now || m.CompareAndSwap(now, n) {
			return
		}
	}
}
