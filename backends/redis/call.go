package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/internal/failure"
	"github.com/terracecache/terrace/backends/internal/gate"
	"github.com/terracecache/terrace/tier"
)

// call runs op within the context, and once again where it met a connection that the
// server had closed. The flag tells op that it runs again: the server may have done
// what op asked the first time.
func call[T any](ctx context.Context, s *Store, doing string, op func(again bool) (T, error)) (T, error) {
	if s.invalid != nil {
		var none T
		return none, s.invalid
	}
	value, err := gate.Do(ctx, s.gate, func() (T, error) {
		value, err := op(false)
		if failure.IsDead(err) && ctx.Err() == nil && !s.gate.Closed() {
			value, err = op(true)
		}
		return value, err
	})
	return value, s.wrap(ctx, doing, err)
}

// do is call for what may be repeated and answers nothing.
func do(ctx context.Context, s *Store, doing string, op func() error) error {
	_, err := call(ctx, s, doing, func(bool) (struct{}, error) { return struct{}{}, op() })
	return err
}

// wrap says what failed, and gives errors that mean the same one identity: the
// client answers a context's deadline as a socket's timeout, and its own closing as
// whatever its connections make of it.
func (s *Store) wrap(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if u := (*undialled)(nil); errors.As(err, &u) {
		err = u.err
	}
	s.doubtTopology(ctx, err)
	deadline, limited := ctx.Deadline()
	switch {
	case errors.Is(err, tier.ErrClosed):
		return tier.ErrClosed
	case s.owned && s.gate.Closed() && !isReply(err), errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("terrace/redis: %s: %w (%w)", doing, tier.ErrClosed, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
	case ctx.Err() != nil:
		err = fmt.Errorf("%w (%w)", ctx.Err(), err)
	case limited && isTimeout(err) && !time.Now().Before(deadline):
		err = fmt.Errorf("%w (%w)", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("terrace/redis: %s: %w", doing, asReply(err))
}

// doubtTopology has a Cluster's client ask for the topology again when a node cannot be
// reached: another may have taken its place, of which go-redis learns by itself once a
// minute, or from a node that it does reach. It asks as often as five times a second.
func (s *Store) doubtTopology(ctx context.Context, err error) {
	if c, ok := s.client.(*redis.ClusterClient); ok && tier.IsOutage(err) {
		c.ReloadState(ctx)
	}
}

// isReply reports whether the error is what the server answered, and not a failure
// to reach it.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !errors.Is(err, redis.Nil)
}

// isAnswer reports whether the server has answered a read, be it by an error.
func isAnswer(err error) bool {
	return err == nil || isReply(err) || errors.Is(err, tier.ErrUnreadable)
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}
