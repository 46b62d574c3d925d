package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/tier"
)

// BusOptions say how a cache uses its bus. Zero means the default.
type BusOptions struct {
	// Channel is where the caches talk to each other that hold the same keys: give the
	// cache one name in all processes, or one Channel. Default: "terrace:" and the name.
	Channel string
	// Heartbeat is how often a cache that has nothing to say tells that it lives, and
	// how far it has counted. Who misses three of them drops what may be stale. At least
	// 1 ms. Default 2 s.
	Heartbeat time.Duration
	// Clamp is how long the tiers in memory keep what they hold while the bus is lost, or
	// the tracking (see Options.Track). It does not count while every shared tier is
	// left alone by its breaker, when nothing could be read again. Negative: as long as ever. Default 5 s.
	Clamp time.Duration
	// Queue bounds the keys that wait to be announced. If there are more, all keys are
	// announced at once. It also bounds the keys that are looked at again for a tracking.
	// If there are more, they are dropped without a look. Default 4,096.
	Queue int
	// Owned says that nobody else uses the bus: Close of the cache closes it too. Where New
	// fails it is left to the caller.
	Owned bool
}

func (o BusOptions) withDefaults(name string) BusOptions {
	if o.Channel == "" {
		o.Channel = "terrace:" + name
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 2 * time.Second
	}
	if o.Clamp == 0 {
		o.Clamp = 5 * time.Second
	}
	if o.Queue == 0 {
		o.Queue = 4096
	}
	return o
}

func (o BusOptions) validate() error {
	var errs []error
	if o.Heartbeat != 0 && (o.Heartbeat < time.Millisecond || o.Heartbeat > time.Hour) {
		errs = append(errs, fmt.Errorf("bus Heartbeat %v: want 1ms to 1h, or zero for the default", o.Heartbeat))
	}
	if o.Queue < 0 {
		errs = append(errs, fmt.Errorf("bus Queue %d: want zero (for the default) or more", o.Queue))
	}
	return errors.Join(errs...)
}

// link joins a cache to the caches of other processes (P2). It announces what this one
// writes, when the shared tiers have it, and takes what others announce out of the tiers
// in memory, behind the same fence as a write of its own (W1). When it may have missed
// something it trusts nothing that they held until then.
//
// A nil link is that of a cache without a bus.
type link[K comparable, V any] struct {
	cache   *Cache[K, V]
	above   *invalidator[K, V] // of the tiers in memory
	bus     tier.Bus
	keys    *tier.KeyCoder[K]
	options BusOptions

	id    uint64 // of the publisher; drawn anew for each cache
	epoch uint64 // when it began
	out   *outbox[K]
	again chan struct{} // of one: the bus is back

	trying atomic.Int64 // keys in the message that is being published

	ctx         context.Context // ends when the cache is closed
	cancel      context.CancelFunc
	closing     chan struct{} // closed when the rest is to be published
	flushed     chan struct{} // closed when that is done, or was given up
	running     sync.WaitGroup
	unsubscribe func()

	mu        sync.Mutex
	connected bool
	peers     map[uint64]*peer
	settling  tier.Instant // until when peers may be met who have published before
	unsettled bool         // such a one was met

	counts busCounts
}

type busCounts struct {
	published, failures, received, own, applied, gaps, overflows atomic.Uint64

	lag, maxLag atomic.Int64 // time.Durations
}

// BusStats are the counts of a cache's bus. All are zero where there is none.
type BusStats struct {
	// Connected reports whether messages arrive now, as far as the bus can tell.
	Connected bool
	// Published counts the messages that announced writes, Failures the tries to publish
	// that failed and are made again. Waiting is how many keys are to be announced.
	Published, Failures uint64
	Waiting             int
	// Overflows counts how often all keys were announced for want of room in the queue.
	Overflows uint64
	// Received counts the messages that came, Own those of them that were this cache's.
	Received, Own uint64
	// Applied counts the keys that were dropped from the tiers in memory because others
	// have written them.
	Applied uint64
	// Gaps counts how often messages may have been missed: the connection was lost, a
	// number was missing, a publisher has vanished, or a message could not be read.
	Gaps uint64
	// Dropped counts how often, for a gap or for another's Clear, all was dropped that
	// the tiers in memory held. What falls together is counted once.
	Dropped uint64
	// Publishers is how many other caches publish on the channel.
	Publishers int
	// Lag is the time from a write to its being applied here, of the last message, and
	// MaxLag the longest. They are as exact as the two processes' wall clocks agree.
	Lag, MaxLag time.Duration
}

func newLink[K comparable, V any](c *Cache[K, V], bus tier.Bus, o BusOptions) (*link[K, V], error) {
	keys, err := tier.NewKeyCoder[K]()
	if err != nil {
		return nil, err // as validate has found before
	}
	b := &link[K, V]{
		cache: c, above: c.above, bus: bus, keys: keys, options: o,
		id:      rand.Uint64(),
		epoch:   uint64(time.Now().UnixMicro()),
		out:     newOutbox[K](o.Queue),
		again:   make(chan struct{}, 1),
		closing: make(chan struct{}),
		flushed: make(chan struct{}),
		peers:   make(map[uint64]*peer),
	}
	b.ctx, b.cancel = context.WithCancel(c.above.ctx)
	return b, nil
}

// start subscribes. Without an error, close must be called.
func (b *link[K, V]) start() (err error) {
	if b.unsubscribe, err = b.bus.Subscribe(b.options.Channel, listener[K, V]{b}); err != nil {
		b.cancel()
		return fmt.Errorf("terrace: cache %q: bus: subscribe: %w", b.cache.name, err)
	}
	b.running.Go(b.publish)
	b.running.Go(b.watch)
	return nil
}

// close publishes what is left, tells the others that this cache goes, and ends all
// that the link runs, within the context.
func (b *link[K, V]) close(ctx context.Context) error {
	if b == nil {
		return nil
	}
	var errs []error
	close(b.closing)
	select {
	case <-b.flushed:
	case <-ctx.Done():
	}
	if b.unannounced() > 0 {
		errs = append(errs, fmt.Errorf("terrace: cache %q: close: not all that was written was announced on the bus", b.cache.name))
	}
	b.cancel()
	return errors.Join(append(errs, b.cache.closeWithin(ctx, "the bus", func() {
		b.unsubscribe()
		b.running.Wait()
		if b.options.Owned {
			if err := b.bus.Close(); err != nil {
				b.cache.log.warn("bus failed to close", "", err)
			}
		}
	}))...)
}

// unannounced returns how many keys are to be announced; all are one.
func (b *link[K, V]) unannounced() int { return b.out.len() + int(b.trying.Load()) }

func (b *link[K, V]) stats() (s BusStats) {
	if b == nil {
		return s
	}
	n := &b.counts
	b.mu.Lock()
	s.Connected, s.Publishers = b.connected, len(b.peers)
	b.mu.Unlock()
	s.Published, s.Failures, s.Waiting, s.Overflows = n.published.Load(), n.failures.Load(), b.unannounced(), n.overflows.Load()
	s.Received, s.Own, s.Applied = n.received.Load(), n.own.Load(), n.applied.Load()
	s.Gaps, s.Dropped = n.gaps.Load(), b.above.clears.Load()
	s.Lag, s.MaxLag = time.Duration(n.lag.Load()), time.Duration(n.maxLag.Load())
	return s
}
