package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/redis/go-redis/v9/push"

	"github.com/terracecache/terrace/tier"
)

// tracks are the trackings of a store.
type tracks struct {
	mu     sync.Mutex
	open   map[tracker]struct{}
	closed bool
	nodes  sync.Once // has a Cluster's client tell of nodes
}

// tracker tells a handler of changes, of one server or of several.
type tracker interface {
	start(ctx context.Context)
	stop()  // begins to end it
	close() // ends it
	look()  // says that the servers may be others
}

func (t *tracks) close() {
	t.mu.Lock()
	t.closed = true
	open := t.open
	t.open = nil
	t.mu.Unlock()
	for one := range open {
		one.stop()
	}
	for one := range open {
		one.close()
	}
}

// look has all trackings look whether the servers are still the same.
func (t *tracks) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for one := range t.open {
		one.look()
	}
}

// Track implements [tier.BytesTracker] by server-assisted tracking of the store's prefix
// (Redis 6): CLIENT TRACKING in broadcasting mode, on a connection of its own that speaks
// RESP3. It works with one server, with the master that Sentinels name, and with a
// Cluster, where it has a connection to each master. On a Ring, and on a Cluster whose
// replicas are read, it answers [errors.ErrUnsupported]. A server that refuses it is told
// to the handler, as a connection that is lost, and tried again.
//
// The server tells of the keys of all its databases alike, and without a prefix of all
// keys that there are.
func (s *Store) Track(h tier.TrackHandler[string]) (stop func(), err error) {
	if s.invalid != nil {
		return nil, s.invalid
	}
	t, err := s.newTracker(h)
	if err != nil {
		return nil, err
	}
	s.tracks.mu.Lock()
	defer s.tracks.mu.Unlock()
	if s.tracks.closed {
		return nil, tier.ErrClosed
	}
	if s.tracks.open == nil {
		s.tracks.open = make(map[tracker]struct{})
	}
	s.tracks.open[t] = struct{}{}
	t.start(context.Background())
	return func() {
		s.tracks.mu.Lock()
		delete(s.tracks.open, t)
		s.tracks.mu.Unlock()
		t.close()
	}, nil
}

func (s *Store) newTracker(h tier.TrackHandler[string]) (tracker, error) {
	box := newMailbox[change](trackListener{h}, s.options.Tracking.Buffer)
	switch c := s.client.(type) {
	case *redis.Client:
		return &serverTracking{newTracking(c.Options(), s.options), box}, nil
	case *redis.ClusterClient:
		if readsReplicas(c) {
			return nil, fmt.Errorf("terrace/redis: tracking needs a Cluster's client that reads from masters, as a replica may not have yet what a master tells; leave out ReadOnly, RouteByLatency and RouteRandomly: %w", errors.ErrUnsupported)
		}
		// It learns of a node by what it is asked for, which is sooner than we do.
		s.tracks.nodes.Do(func() {
			store := weak.Make(s) // the client may outlive it, and forgets nobody
			c.OnNewNode(func(*redis.Client) {
				if s := store.Value(); s != nil {
					s.tracks.look()
				}
			})
		})
		return newClusterTracking(c, s.options, box), nil
	default:
		return nil, fmt.Errorf("terrace/redis: tracking works with one server, its Sentinels, or a Cluster, not with a %T: %w", s.client, errors.ErrUnsupported)
	}
}

// canTrack reports whether Track may be called.
func (s *Store) canTrack() bool {
	c, cluster := s.client.(*redis.ClusterClient)
	return s.single() || cluster && !readsReplicas(c)
}

// serverTracking is the tracking of one server.
type serverTracking struct {
	*tracking
	box *mailbox[change]
}

func (t *serverTracking) start(ctx context.Context) { t.startInto(ctx, t.box) }

func (*serverTracking) look() {} // whoever has its address is the server

// tracking is the line on which a server tells what changes.
//
// go-redis reads pushes wherever it reads, and has one way to read when nothing was
// asked: that of pub/sub. So this is a subscription to no channel.
type tracking struct {
	line[change]
	prefix  string
	options redis.Options
	client  *redis.Client // of the present connection
	stands  atomic.Bool   // the present connection tells of all changes
}

// change is what the server tells of: keys, or all of them.
type change struct {
	keys []string
	all  bool
}

func newTracking(client *redis.Options, o Options) *tracking {
	t := &tracking{prefix: o.Prefix, options: *client}
	t.line = line[change]{
		what: "tracking", ping: o.Tracking.Ping,
		connect: func(ctx context.Context) (*redis.PubSub, error) { return t.dial(ctx, o.Tracking) },
		take: func(read any) (connected bool, err error) {
			// Whatever answers the first ping, the connection was told to track before.
			return !t.stands.Swap(true), nil
		},
		hangUp: t.hangUp,
	}
	own, onConnect := &t.options, client.OnConnect
	own.Protocol = 3
	own.DialTimeout, own.ReadTimeout, own.WriteTimeout = o.Tracking.Timeout, o.Tracking.Timeout, o.Tracking.Timeout
	own.ContextTimeoutEnabled = true
	own.MaxRetries, own.DialerRetries = -1, 1
	own.PoolSize, own.MinIdleConns, own.MaxIdleConns, own.MaxActiveConns = 1, 0, 0, 0
	own.Limiter = nil
	// A connection that go-redis moved to another server would not track there.
	own.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	own.ClientSideCacheConfig, own.ClientSideCache = nil, nil
	own.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		if onConnect != nil {
			if err := onConnect(ctx, conn); err != nil {
				return err
			}
		}
		return t.begin(ctx, conn)
	}
	return t
}

// dial returns a connection that tracks, and on which a ping was sent.
func (t *tracking) dial(ctx context.Context, o TrackingOptions) (*redis.PubSub, error) {
	t.stands.Store(false)
	own := t.options
	own.PushNotificationProcessor = push.NewProcessor()
	if err := own.PushNotificationProcessor.RegisterHandler("invalidate", t, true); err != nil {
		return nil, err
	}
	client := redis.NewClient(&own)
	t.client = client
	return dial(ctx, o.Timeout, func(ctx context.Context) (*redis.PubSub, error) {
		sub := client.Subscribe(ctx)
		return sub, sub.Ping(ctx)
	})
}

func (t *tracking) hangUp() {
	if t.client != nil {
		_ = t.client.Close()
		t.client = nil
	}
}

// begin has a new connection track. go-redis goes on in RESP2 where a server does not
// know RESP3, and there a server takes the order and tells nothing.
func (t *tracking) begin(ctx context.Context, conn *redis.Conn) error {
	hello, err := conn.Hello(ctx, 3, "", "", "").Result()
	if err == nil && fmt.Sprint(hello["proto"]) != "3" {
		err = errors.New("it goes on in another protocol")
	}
	if err != nil {
		return fmt.Errorf("the server cannot speak RESP3, which tracking needs (Redis 6 or later): %w", err)
	}
	args := []any{"client", "tracking", "on", "bcast"}
	if t.prefix != "" {
		args = append(args, "prefix", t.prefix)
	}
	if err := conn.Do(ctx, args...).Err(); err != nil {
		return fmt.Errorf("the server refuses CLIENT TRACKING: %w", err)
	}
	return nil
}

// HandlePushNotification is called by go-redis with what the server tells: a list of
// keys, or nil for all of them. Before the first pong has come nobody was promised it.
func (t *tracking) HandlePushNotification(_ context.Context, _ push.NotificationHandlerContext, notification []any) error {
	if !t.stands.Load() || len(notification) < 2 {
		return nil
	}
	list, ok := notification[1].([]any)
	if !ok {
		t.to.message(change{all: true}, 0)
		return nil
	}
	c := change{keys: make([]string, 0, len(list))}
	size := 0
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			c.all = true // what cannot be read may be any key
			continue
		}
		if key, ours := strings.CutPrefix(text, t.prefix); ours {
			c.keys = append(c.keys, key)
			size += len(text) + 16 // with its string's header
		}
	}
	t.to.message(c, size)
	return nil
}

// trackListener hands what came to a handler.
type trackListener struct{ tier.TrackHandler[string] }

// Message implements listener.
func (l trackListener) Message(c change) {
	if c.all {
		l.ChangedAll()
		return
	}
	l.Changed(c.keys)
}

// Heads implements [tier.BytesTracker] by a pipeline of GETRANGE.
func (s *Store) Heads(ctx context.Context, keys []string) ([][]byte, error) {
	return call(ctx, s, "heads", func(bool) ([][]byte, error) {
		heads := make([][]byte, 0, len(keys))
		for len(keys) > len(heads) {
			some := keys[len(heads):min(len(keys), len(heads)+batchKeys)]
			cmds := make([]*redis.StringCmd, len(some))
			_, _ = s.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its error
				for i, key := range some {
					cmds[i] = p.GetRange(ctx, s.key(key), 0, tier.HeadSize-1)
				}
				return nil
			})
			for _, cmd := range cmds {
				head, err := cmd.Bytes()
				switch {
				case redis.HasErrorPrefix(err, "WRONGTYPE"):
					head = nil
				case err != nil:
					return nil, err
				case len(head) == 0: // nothing, or an empty value, which is none of an entry
					head = nil
				}
				heads = append(heads, head)
			}
		}
		return heads, nil
	})
}
