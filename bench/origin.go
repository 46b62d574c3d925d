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
// counts who asks. It never fails and has no limit of its own.
type origin struct {
	latency time.Duration
	filler  []byte // what a value has behind its stamp

	calls   atomic.Int64
	running atomic.Int64
	peak    atomic.Int64
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
	o.calls.Add(1)
	defer o.running.Add(-1)
	raise(&o.peak, o.running.Add(1))
	wait := time.NewTimer(o.latency)
	defer wait.Stop()
	select {
	case <-wait.C:
		return o.value(key, began), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (o *origin) value(key string, at tier.Instant) []byte {
	v := make([]byte, 0, leastValue+len(o.filler))
	v = binary.BigEndian.AppendUint64(v, uint64(at))
	v = binary.BigEndian.AppendUint64(v, keySum(key))
	return append(v, o.filler...)
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
	o.calls.Store(0)
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
