package redis

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/terracecache/terrace/backends/internal/gather"
	"github.com/terracecache/terrace/backends/internal/lone"
	"github.com/terracecache/terrace/tier"
)

// defaultIdle is go-redis's own.
const defaultIdle = 30 * time.Minute

// newLine returns a line to the server, and what it leaves of connections and calls. It is nil
// where there can be none: for a server that is found otherwise (a Sentinel's master is another
// one after a failover, a Cluster's keys are on many), and where go-redis does more with a
// connection than to read.
func newLine(c *redis.Options, o Options) (*lone.Line[[]byte], *redis.Options, Options) {
	o = o.withDefaults()
	if o.Gather == 1 || o.MaxCalls == 1 || c.PoolSize == 1 || c.MaxActiveConns == 1 ||
		c.StreamingCredentialsProvider != nil || c.ClientSideCache != nil || c.ClientSideCacheConfig != nil || c.Limiter != nil {
		return nil, c, o
	}
	own := *c
	own.PoolSize, own.MinIdleConns, own.MaxActiveConns, own.PipelinePoolSize = 1, 0, 0, -1
	own.MaxRetries, own.DialerRetries = -1, 1
	own.ConnMaxIdleTime, own.ConnMaxLifetime = -1, 0 // the line's
	own.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	dial := own.Dialer
	if dial == nil {
		dial = redis.NewDialer(c)
	}
	limits := lone.Limits{Connect: defaultTimeout, Idle: defaultIdle, Life: c.ConnMaxLifetime}
	if c.DialTimeout > 0 {
		limits.Connect = c.DialTimeout
	}
	if c.ConnMaxIdleTime != 0 {
		limits.Idle = c.ConnMaxIdleTime
	}
	line := lone.New(limits, func(conn *lone.Conn) lone.Client[[]byte] {
		own := own
		own.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return conn.Dial(func() (net.Conn, error) { return dial(ctx, network, addr) })
		}
		return loneClient{redis.NewClient(&own)}
	})
	o.MaxCalls--
	if c.PoolSize > 0 {
		c.PoolSize--
	}
	if c.MaxActiveConns > 0 {
		c.MaxActiveConns--
	}
	return line, c, o
}

// loneClient is the client of a line.
type loneClient struct{ client *redis.Client }

// Read implements [lone.Client]. What go-redis would try again, it tries again where others' reads
// are made.
func (c loneClient) Read(ctx context.Context, key string) (value []byte, o lone.Outcome, err error) {
	value, err = found(c.client.Get(ctx, key).Bytes())
	if err == nil || errors.Is(err, tier.ErrUnreadable) {
		return value, lone.Answered, err
	}
	return nil, lone.Lost, err
}

// Close implements [lone.Client].
func (c loneClient) Close() { _ = c.client.Close() }

// readAlone is what the gatherer does with a read that is alone.
func (s *Store) readAlone(ctx context.Context, key string) (a gather.Answer[[]byte], ok bool) {
	a.Value, ok, a.Err = s.line.Read(ctx, key)
	return a, ok
}
