package redis

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/terracecache/terrace/backends/internal/gather"
	"github.com/terracecache/terrace/backends/internal/lone"
)

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
	line := lone.New(own.DialTimeout, func(of context.Context, conn *lone.Conn) lone.Client[[]byte] {
		own := own
		dial := own.Dialer
		if dial == nil {
			dial = redis.NewDialer(&own)
		}
		own.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(of, cancel)()
			dialled, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return conn.Over(dialled)
		}
		own.PoolSize, own.MinIdleConns, own.MaxActiveConns, own.PipelinePoolSize = 1, 0, 0, -1
		own.MaxRetries, own.ConnMaxIdleTime = -1, -1
		own.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
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

// Read implements [lone.Client].
func (c loneClient) Read(key string) (value []byte, stands bool, err error) {
	value, err = found(c.client.Get(context.Background(), key).Bytes())
	return value, isAnswer(err), err
}

// Close implements [lone.Client].
func (c loneClient) Close() { _ = c.client.Close() }

// readAlone is what the gatherer does with a read that is alone.
func (s *Store) readAlone(ctx context.Context, key string) (a gather.Answer[[]byte], ok bool) {
	a.Value, ok, a.Err = s.line.Read(ctx, key)
	return a, ok
}
