package redis

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// subscription is the line of one channel.
type subscription struct{ line[[]byte] }

func newSubscription(b *Bus, channel string) *subscription {
	s := &subscription{line[[]byte]{
		what: "subscription", ping: b.options.Ping,
		connect: func(ctx context.Context) (*redis.PubSub, error) { return b.connect(ctx, channel) },
	}}
	s.take = func(read any) (connected bool, err error) {
		switch m := read.(type) {
		case *redis.Message:
			s.to.message([]byte(m.Payload), len(m.Payload))
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
