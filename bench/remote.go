package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
)

// remote is what l3 can be: a server, or several that share the keys.
type remote struct {
	kind  string // for names of rows
	label string // for people; without secrets
	// open returns a store whose keys begin with the prefix. It does not connect.
	open func(prefix string) (tier.Bytes, error)
	// probe returns nil when all servers answer.
	probe func(ctx context.Context) error
	stop  func() // may be nil
}

const (
	// answerWithin bounds the wait for a server that is asked whether it is there.
	answerWithin = 3 * time.Second
	// clearWithin bounds the removal of a row's keys, clearSoon where somebody waits
	// for the end of an interrupted run.
	clearWithin = 10 * time.Second
	clearSoon   = time.Second
)

// silent keeps go-redis from writing on stderr what its errors say anyway.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { goredis.SetLogger(silent{}) }

// openRemotes returns what the settings want as l3, each of which answers. Those
// that come with an error are to be closed like others.
func openRemotes(ctx context.Context, s *settings) (remotes []*remote, err error) {
	if s.Redis != "" {
		r, err := redisRemote(s.Redis)
		if err != nil {
			return remotes, fmt.Errorf("--redis: %w", err)
		}
		remotes = append(remotes, r)
		if err := r.answers(ctx); err != nil {
			return remotes, fmt.Errorf("--redis: %w", err)
		}
	}
	if len(s.Memcached) > 0 {
		r, err := memcachedRemote(s.Memcached)
		if err != nil {
			return remotes, fmt.Errorf("--memcached: %w", err)
		}
		remotes = append(remotes, r)
		if err := r.answers(ctx); err != nil {
			return remotes, fmt.Errorf("--memcached: %w", err)
		}
	}
	if len(remotes) == 0 && s.wantsRemote() {
		r, err := embeddedRemote()
		if err != nil {
			return nil, failure{fmt.Errorf("start the embedded Redis: %w", err)}
		}
		remotes = append(remotes, r)
	}
	return remotes, nil
}

func closeRemotes(remotes []*remote) {
	for _, r := range remotes {
		if r.stop != nil {
			r.stop()
		}
	}
}

// answers returns nil when the remote answers soon.
func (r *remote) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := r.probe(ctx); err != nil {
		return fmt.Errorf("%s does not answer: %w", r.label, err)
	}
	return nil
}

// clear removes the keys under the prefix. It asks for each by name, so that nothing
// else in the server is looked at, let alone removed.
func (r *remote) clear(ctx context.Context, prefix string, keys []string) error {
	within := clearWithin
	if ctx.Err() != nil {
		within = clearSoon
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	b, err := r.open(prefix)
	if err != nil {
		return err
	}
	defer b.Close()
	batch, ok := tier.AsBytesBatcher(b)
	if !ok {
		return errors.ErrUnsupported
	}
	return batch.DeleteMany(ctx, keys)
}

// newPrefix returns a prefix that no other run has.
func newPrefix() string { return "terrace-bench:" + rand.Text() + ":" }

// redisRemote is a Redis of the user's.
func redisRemote(rawURL string) (*remote, error) {
	r := &remote{
		kind: "redis",
		open: func(prefix string) (tier.Bytes, error) { return redis.Open(rawURL, redis.Options{Prefix: prefix}) },
	}
	b, err := r.open(newPrefix()) // refuses a URL that is wrong
	if err != nil {
		return nil, err
	}
	defer b.Close()
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("malformed URL") // the error itself quotes a password
	}
	r.label = "redis at " + u.Host + u.Path
	r.probe = func(ctx context.Context) error { return probe(ctx, r.open) }
	return r, nil
}

// memcachedRemote is one memcached of the user's, or several that share the keys.
func memcachedRemote(addresses []string) (*remote, error) {
	open := func(prefix string, addresses ...string) (tier.Bytes, error) {
		return memcached.Open(memcached.Options{Servers: addresses, Prefix: prefix})
	}
	r := &remote{
		kind:  "memcached",
		label: "memcached at " + strings.Join(addresses, ", "),
		open:  func(prefix string) (tier.Bytes, error) { return open(prefix, addresses...) },
	}
	b, err := r.open(newPrefix()) // refuses addresses that are wrong
	if err != nil {
		return nil, err
	}
	defer b.Close()
	r.probe = func(ctx context.Context) error {
		for _, address := range addresses { // each: one key is on one server only
			err := probe(ctx, func(prefix string) (tier.Bytes, error) { return open(prefix, address) })
			if err != nil {
				return err
			}
		}
		return nil
	}
	return r, nil
}

// embeddedRemote is a Redis inside this process, for runs without a server.
func embeddedRemote() (*remote, error) {
	m, err := miniredis.Run()
	if err != nil {
		return nil, err
	}
	m.ClockTTL(true) // else its keys do not expire
	r := &remote{
		kind:  "redis",
		label: "EMBEDDED Redis (miniredis, in this process): its latencies and throughput are not those of a real server",
		open: func(prefix string) (tier.Bytes, error) {
			return redis.Open("redis://"+m.Addr(), redis.Options{Prefix: prefix})
		},
		stop: m.Close,
	}
	r.probe = func(ctx context.Context) error { return probe(ctx, r.open) }
	return r, nil
}

// probe asks for a key that is not there.
func probe(ctx context.Context, open func(prefix string) (tier.Bytes, error)) error {
	b, err := open(newPrefix())
	if err != nil {
		return err
	}
	defer b.Close()
	_, err = b.Get(ctx, "probe")
	return err
}
