package redis

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/tier"
)

// subscription is the line of one channel.
type subscription struct{ line[[]byte] }

func newSubscription(b *Bus, channel string, h tier.BusHandler) *subscription {
	s := &subscription{line[[]byte]{
		what: "subscription", ping: b.options.Ping,
		connect: func(ctx context.Context) (*redis.PubSub, error) { return b.connect(ctx, channel) },
		mailbox: newMailbox[[]byte](h, b.options.Buffer),
	}}
	s.take = func(read any) (connected bool, err error) {
		switch m := read.(type) {
		case *redis.Message:
			s.mailbox.message([]byte(m.Payload), len(m.Payload))
		case *redis.Subscription:
			if m.Kind != "subscribe" && m.Kind != "ssubscribe" {
				return false, errMoved
			}
			return true, nil
		}
		return false, nil
	}
	return s
}
