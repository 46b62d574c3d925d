package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// topology asks a Cluster who its masters are, by a client of its own: the store's may
// have no connection to spare, or hooks.
type topology struct {
	client *redis.ClusterClient
	limit  time.Duration
	heard  atomic.Uint64 // answers of nodes, or of the function that stands for them

	asking sync.Mutex // held also by a question that was left behind
}

// Why the masters are not known.
var (
	errNobodyAnswers = errors.New("no node says which they are")
	errStillAsking   = errors.New("an earlier question has not returned")
)

// nodesAsked is how many nodes that do not answer are tried before a question fails.
const nodesAsked = 3

func newTopology(client *redis.ClusterOptions, limit time.Duration) *topology {
	t := &topology{limit: nodesAsked * limit}
	own := *client
	own.Addrs = slices.Clone(client.Addrs) // go-redis appends to it
	own.DialTimeout, own.ReadTimeout, own.WriteTimeout, own.PoolTimeout = limit, limit, limit, limit
	own.ContextTimeoutEnabled = true
	own.MaxRetries, own.DialerRetries, own.MaxRedirects = -1, 1, -1
	own.PoolSize, own.MinIdleConns, own.MaxIdleConns, own.MaxActiveConns = 1, 0, 0, 0
	own.PipelineReadBufferSize, own.PipelineWriteBufferSize = 0, 0
	own.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	own.PushNotificationProcessor = nil
	if slots := client.ClusterSlots; slots != nil {
		own.ClusterSlots = func(ctx context.Context) ([]redis.ClusterSlot, error) {
			answer, err := slots(ctx)
			t.note(err)
			return answer, err
		}
	}
	t.client = redis.NewClusterClient(&own)
	t.client.OnNewNode(func(node *redis.Client) { node.AddHook(slotsHook{t}) })
	return t
}

func (t *topology) note(err error) {
	if err == nil {
		t.heard.Add(1)
	}
}

// masters returns how to reach each master, by address. It returns in time also where
// go-redis does not heed the context.
func (t *topology) masters(ctx context.Context) (map[string]*redis.Options, error) {
	if !t.asking.TryLock() {
		return nil, errStillAsking
	}
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	type outcome struct {
		masters map[string]*redis.Options
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		masters, err := t.ask(ctx)
		t.asking.Unlock()
		done <- outcome{masters, err}
	}()
	select {
	case o := <-done:
		return o.masters, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask has a node that is drawn by lot say who the masters are. go-redis goes on with what
// it knew where none does, and does not tell.
func (t *topology) ask(ctx context.Context) (map[string]*redis.Options, error) {
	var mu sync.Mutex
	masters := make(map[string]*redis.Options)
	before := t.heard.Load()
	err := t.client.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		masters[node.Options().Addr] = node.Options()
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case t.heard.Load() == before:
		return nil, errNobodyAnswers
	case len(masters) == 0:
		return nil, errors.New("the nodes serve no slots")
	case len(masters) > mostMasters:
		return nil, fmt.Errorf("there are %d, and at most %d are tracked", len(masters), mostMasters)
	}
	return masters, nil
}

func (t *topology) close() { _ = t.client.Close() }

// readsReplicas reports whether the client reads from others than masters.
func readsReplicas(c *redis.ClusterClient) bool {
	o := c.Options()
	return o.ReadOnly || o.RouteByLatency || o.RouteRandomly
}

// slotsHook notes that a node has said who the masters are.
type slotsHook struct{ topology *topology }

// DialHook implements [redis.Hook].
func (slotsHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (h slotsHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if _, ok := cmd.(*redis.ClusterSlotsCmd); ok {
			h.topology.note(err)
		}
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (slotsHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
