package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/tier"
)

// Bus is a [tier.Bus] over Redis pub/sub, on a Cluster over sharded pub/sub (Redis 7):
// a message then reaches the nodes of its channel's shard only. Each subscription has a
// connection of its own, beside the client's pool, which is made again when it is lost.
type Bus struct {
	store   *Store // for its calls of the client; it stores nothing
	options BusOptions
	sharded bool
	ctx     context.Context // ends when the bus is closed
	stop    context.CancelFunc

	mu     sync.Mutex
	subs   map[*subscription]struct{}
	closed bool
}

var _ tier.Bus = (*Bus)(nil)

// BusOptions are what [NewBusWith] and [OpenBus] can be told.
type BusOptions struct {
	// Prefix is put before each channel.
	Prefix string

	// Timeout bounds each Publish, and each try to connect. Zero: 1 s.
	Timeout time.Duration

	// Ping is how often each subscription's connection is tried, from both ends: one
	// that has been silent for three times as long is given up for lost. Zero: 1 s.
	Ping time.Duration

	// Buffer is how many bytes of messages wait for a subscription's handler at most.
	// Zero: 8 MiB.
	Buffer int
}

const (
	defaultBusTimeout = time.Second
	defaultBusPing    = time.Second
	defaultBusBuffer  = 8 << 20

	// busCalls is how many Publishes are under way at a time.
	busCalls = 64
)

// Validate returns what is wrong with the options, or nil.
func (o BusOptions) Validate() error {
	switch {
	case o.Timeout < 0:
		return fmt.Errorf("terrace/redis: bus Timeout %v: want more than zero, or zero for %v", o.Timeout, defaultBusTimeout)
	case o.Ping < 0:
		return fmt.Errorf("terrace/redis: bus Ping %v: want more than zero, or zero for %v", o.Ping, defaultBusPing)
	case o.Buffer < 0:
		return fmt.Errorf("terrace/redis: bus Buffer %d: want a number of bytes, or zero for %d", o.Buffer, defaultBusBuffer)
	}
	return nil
}

func (o BusOptions) withDefaults() BusOptions {
	if o.Timeout == 0 {
		o.Timeout = defaultBusTimeout
	}
	if o.Ping == 0 {
		o.Ping = defaultBusPing
	}
	if o.Buffer == 0 {
		o.Buffer = defaultBusBuffer
	}
	return o
}

// NewBus returns a bus over a client, which stays the caller's: Close does not close it.
func NewBus(client redis.UniversalClient) *Bus { return NewBusWith(client, BusOptions{}) }

// NewBusWith is [NewBus] with options. If these are wrong, all methods but Close answer
// with that.
func NewBusWith(client redis.UniversalClient, o BusOptions) *Bus {
	return newBus(NewWith(client, Options{MaxCalls: busCalls, Gather: 1}), o)
}

// OpenBus returns a bus with a client of its own, which Close closes. The URL is that of
// [Open]; it does not connect either.
func OpenBus(rawURL string, o BusOptions) (*Bus, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s, err := Open(rawURL, Options{MaxCalls: busCalls, Gather: 1})
	if err != nil {
		return nil, err
	}
	return newBus(s, o), nil
}

func newBus(s *Store, o BusOptions) *Bus {
	if s.invalid == nil {
		s.invalid = o.Validate()
	}
	_, sharded := s.client.(*redis.ClusterClient)
	b := &Bus{store: s, options: o.withDefaults(), sharded: sharded, subs: make(map[*subscription]struct{})}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// String names the bus and its prefix, and no address or credentials.
func (b *Bus) String() string { return fmt.Sprintf("redis bus(prefix %q)", b.options.Prefix) }

// GoString is String, so that no way to print a bus shows its client.
func (b *Bus) GoString() string { return b.String() }

// Publish implements [tier.Bus].
func (b *Bus) Publish(ctx context.Context, channel string, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, b.options.Timeout)
	defer cancel()
	text := string(message) // the command may be sent after we have returned
	return do(ctx, b.store, "publish", func() error {
		if b.sharded {
			return b.store.client.SPublish(ctx, b.options.Prefix+channel, text).Err()
		}
		return b.store.client.Publish(ctx, b.options.Prefix+channel, text).Err()
	})
}

// Subscribe implements [tier.Bus].
func (b *Bus) Subscribe(channel string, h tier.BusHandler) (unsubscribe func(), err error) {
	if b.store.invalid != nil {
		return nil, b.store.invalid
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, tier.ErrClosed
	}
	s := newSubscription(b, b.options.Prefix+channel)
	b.subs[s] = struct{}{}
	s.startInto(b.ctx, newMailbox[[]byte](h, b.options.Buffer))
	return func() {
		b.mu.Lock()
		delete(b.subs, s)
		b.mu.Unlock()
		s.close()
	}, nil
}

// Close implements [tier.Bus]. It closes the client that [OpenBus] made, and leaves one
// that was given to [NewBus] as it is.
func (b *Bus) Close() error {
	b.mu.Lock()
	b.closed = true
	subs := b.subs
	b.subs = nil
	b.mu.Unlock()
	b.stop()
	for s := range subs {
		s.stop()
	}
	for s := range subs {
		s.close()
	}
	return b.store.Close()
}

// connect returns a new subscription to the channel, sent within the bus's time limit.
func (b *Bus) connect(ctx context.Context, channel string) (*redis.PubSub, error) {
	return dial(ctx, b.options.Timeout, func(ctx context.Context) (sub *redis.PubSub, err error) {
		switch c := b.store.client.(type) {
		case *redis.ClusterClient:
			sub = c.SSubscribe(ctx)
			return sub, sub.SSubscribe(ctx, channel)
		case *redis.Client:
			sub = c.Subscribe(ctx)
			return sub, sub.Subscribe(ctx, channel)
		default:
			// The error of the first try is not given; what follows meets it.
			return c.Subscribe(ctx, channel), nil
		}
	})
}
