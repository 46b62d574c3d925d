package redis

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/internal/failure"
	"github.com/terracecache/terrace/backends/internal/gate"
	"github.com/terracecache/terrace/backends/internal/gather"
)

// gatherers are those of the servers: a server that is slow is to hold up no reads of
// others, and a pipeline takes as long as its slowest.
type gatherers struct {
	store *Store
	// server names the server that most likely has the key, and is not asked where
	// there is only one.
	server func(ctx context.Context, key string) string
	known  atomic.Bool // a Cluster's topology is
	only   *gather.Gatherer[[]byte]
	each   sync.Map // by server
	many   many
}

func newGatherers(s *Store) *gatherers {
	g := &gatherers{store: s}
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		g.server = func(ctx context.Context, key string) string {
			ask := func() (*redis.Client, error) { return c.MasterForKey(ctx, key) }
			if g.known.Load() {
				return nameOf(ask())
			}
			// Until go-redis knows the topology it asks for it, whatever the context says.
			node, err := gate.Do(ctx, s.gate, ask)
			if err == nil {
				g.known.Store(true)
			}
			return nameOf(node, err)
		}
	case *redis.Ring:
		g.server = func(_ context.Context, key string) string {
			shard, err := c.GetShardClientForKey(key)
			return nameOf(shard, err)
		}
	default:
		g.only = g.newOne()
		_, g.many.single = c.(*redis.Client)
	}
	return g
}

// nameOf returns the server's address. Where none is known the call itself will tell
// why.
func nameOf(server *redis.Client, err error) string {
	if err != nil {
		return ""
	}
	return server.Options().Addr
}

func (g *gatherers) newOne() *gather.Gatherer[[]byte] {
	return gather.New(g.store.gate, g.store.options.Gather, g.store.fetch)
}

// of returns the gatherer of the key's server. One that is made while the store is
// closed finds the gate closed.
func (g *gatherers) of(ctx context.Context, key string) *gather.Gatherer[[]byte] {
	if g.only != nil {
		return g.only
	}
	server := g.server(ctx, key)
	one, ok := g.each.Load(server)
	if !ok {
		one, _ = g.each.LoadOrStore(server, g.newOne())
	}
	return one.(*gather.Gatherer[[]byte])
}

func (g *gatherers) Close() {
	if g.only != nil {
		g.only.Close()
	}
	g.each.Range(func(_, one any) bool {
		one.(*gather.Gatherer[[]byte]).Close()
		return true
	})
}

// getGathered is Get in one round trip with others.
func (s *Store) getGathered(ctx context.Context, key string) ([]byte, error) {
	a, shared := s.gatherers.of(ctx, key).Do(ctx, key)
	if a.Err != nil {
		return nil, s.wrap(ctx, "get", a.Err)
	}
	if shared { // each value is its caller's
		return bytes.Clone(a.Value), nil
	}
	return a.Value, nil
}

// fetch reads the keys by one MGET, or where that may not be by pipelined GETs, each of
// which has its own error.
func (s *Store) fetch(ctx context.Context, keys []string, answers []gather.Answer[[]byte]) {
	if s.get(ctx, keys, answers) && ctx.Err() == nil && !s.gate.Closed() {
		s.getAgain(ctx, keys, answers)
	}
	if s.line == nil {
		return
	}
	switch err := answers[0].Err; {
	case failure.IsDead(err), isTimeout(err):
		s.line.Drop()
	case len(keys) == 1 && isAnswer(err):
		s.line.Connect(keys[0])
	}
}

// get reports whether it met a connection that the server had closed.
func (s *Store) get(ctx context.Context, keys []string, answers []gather.Answer[[]byte]) (dead bool) {
	if len(keys) == 1 {
		value, err := found(s.client.Get(ctx, keys[0]).Bytes())
		answers[0] = gather.Answer[[]byte]{Value: value, Err: err}
		return failure.IsDead(err)
	}
	if s.gatherers.many.may() {
		if dead, ok := s.getMany(ctx, keys, answers); ok {
			return dead
		}
	}
	commands, args := make([]redis.Cmder, len(keys)), make([]any, 0, 2*len(keys))
	for i, key := range keys {
		args = append(args, "get", key)
		commands[i] = redis.NewStringCmd(ctx, args[2*i:2*i+2:2*i+2]...)
	}
	pipe := s.client.Pipeline()
	_ = pipe.BatchProcess(ctx, commands...) // only notes them
	replies, _ := pipe.Exec(ctx)
	for i, reply := range replies {
		value, err := found(reply.(*redis.StringCmd).Bytes())
		answers[i] = gather.Answer[[]byte]{Value: value, Err: err}
		dead = dead || failure.IsDead(err)
	}
	return dead
}

// getAgain asks once more for what was lost with its connection.
func (s *Store) getAgain(ctx context.Context, keys []string, answers []gather.Answer[[]byte]) {
	var lost []string
	var places []int
	for i, a := range answers {
		if failure.IsDead(a.Err) {
			lost, places = append(lost, keys[i]), append(places, i)
		}
	}
	again := make([]gather.Answer[[]byte], len(lost))
	s.get(ctx, lost, again)
	for i, place := range places {
		answers[place] = again[i]
	}
}
