package tier

import (
	"context"
	"errors"
)

// Bus carries short messages between processes, so that the caches of one tell those
// of others what they have written. Any messaging system that delivers to all who
// listen will do: Redis pub/sub, NATS, a broker of one's own. It need not keep messages
// for who is away, and may deliver one more than once, but it must tell its subscribers
// of every loss that it cannot exclude.
//
// All methods may be called concurrently. None panics.
type Bus interface {
	// Publish sends a message to all who subscribe to the channel at this time, the
	// caller's own subscriptions included or not, as the system has it. An error says
	// that it may not have arrived everywhere. Messages that one goroutine publishes to
	// one channel one after another arrive in that order. It returns soon after the
	// context ends, does not keep the slice, and answers [ErrClosed] after Close. A
	// channel is any text of up to 1 KiB; a message has up to 1 MiB.
	Publish(ctx context.Context, channel string, message []byte) error

	// Subscribe gives the handler what is published to the channel, until unsubscribe
	// or Close is called. It does not wait for a connection: that there is one the
	// handler is told. Both unsubscribe and Close wait for the call of a handler that is
	// under way, so no handler may call them, and none is called after they return.
	Subscribe(channel string, h BusHandler) (unsubscribe func(), err error)

	// Close ends all subscriptions. A second Close returns nil.
	Close() error
}

// BusHandler is told what happens on a channel: one call at a time, in order. While a
// call runs, messages are kept back up to a bound, and lost beyond it, with Lost and
// Connected.
type BusHandler interface {
	// Connected says that messages which are published from now on arrive. Those
	// from before may have been lost. It is called once at first, and once after
	// each Lost.
	Connected()

	// Message is a message. The slice is the handler's.
	Message(message []byte)

	// Lost says that messages are being lost, or may have been, and why, until
	// Connected is called. The error holds no credentials.
	Lost(why error)
}

// ErrBusOverrun is why messages are lost where a subscriber takes them slower than they
// come.
var ErrBusOverrun = errors.New("terrace: messages come faster than the subscriber takes them")
