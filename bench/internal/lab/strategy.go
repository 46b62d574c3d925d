package lab

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

// Strategy is a way to have an origin's answers without asking for each.
type Strategy struct {
	// Name is for tables and programs.
	Name string
	// Does says in a few words what it does.
	Does string

	open func(o *Origin, seed uint64) (reader, error)
}

// reader is a strategy at work.
type reader interface {
	read(ctx context.Context, key string) (Answer, error)
	// warm has a value where the next read looks.
	warm(ctx context.Context, key string) error
	close(ctx context.Context) error
}

// Lives are what strategies give a value.
type Lives struct {
	TTL   time.Duration
	Stale time.Duration // how long past TTL swr serves it
}

// leaseLife is [coordinator.Lease.Life] of the strategy that has one.
const leaseLife = time.Second

// Strategies returns all that are compared. processes is how many share a store in
// those that are of several.
func Strategies(l Lives, processes int) []Strategy {
	fixed := policy.Lifetime{TTL: l.TTL}
	stale := policy.Lifetime{TTL: l.TTL, StaleWhileRevalidate: l.Stale}
	jittered := stale
	jittered.Jitter = 0.1
	n := strconv.Itoa(processes)
	return []Strategy{
		Unprotected("naive", fixed, policy.Fixed{}),
		Cached("single-flight", fixed, policy.Fixed{}),
		Cached("swr", stale, policy.StaleWhileRevalidate{}),
		Cached("xfetch-1", fixed, policy.XFetch{Beta: 1}),
		Cached("xfetch-2", fixed, policy.XFetch{Beta: 2}),
		Cached("swr-jitter", jittered, policy.StaleWhileRevalidate{}),
		fleet("processes-"+n, "single-flight in each of "+n+" processes over one store", fixed, processes, coordinator.Lease{}),
		fleet("lease-"+n, "the same with the lease", fixed, processes, coordinator.Lease{Life: leaseLife}),
	}
}

// does describes the strategies of one process by name.
var does = map[string]string{
	"naive":         "no protection: read, and at a miss load and write",
	"single-flight": "fixed TTL; one load at a time, which the others wait for",
	"swr":           "one refresh in the background while the stale value is served",
	"xfetch-1":      "early refresh by chance, beta 1",
	"xfetch-2":      "early refresh by chance, beta 2",
	"swr-jitter":    "swr, TTL ± 10 %",
}

// Cached is a [coordinator.Cache] under the policy, over an LRU.
func Cached(name string, life policy.Lifetime, refresh policy.Strategy) Strategy {
	return Strategy{Name: name, Does: does[name], open: func(o *Origin, seed uint64) (reader, error) {
		c, err := newCache(o, life, seeded(refresh, seed), coordinator.Lease{}, memory())
		return cached{c}, err
	}}
}

// seeded has an XFetch draw by the seed.
func seeded(s policy.Strategy, seed uint64) policy.Strategy {
	x, ok := s.(policy.XFetch)
	if !ok {
		return s
	}
	rnd, mu := newRand(seed, forRefresh), new(sync.Mutex)
	x.Rand = func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return rnd.Float64()
	}
	return x
}

func memory() tier.Tier[string, Answer] {
	return tier.Tier[string, Answer]{Name: "l1", Store: lru.New[string, Answer](100)}
}

func newCache(o *Origin, life policy.Lifetime, refresh policy.Strategy, lease coordinator.Lease, tiers ...tier.Tier[string, Answer]) (*coordinator.Cache[string, Answer], error) {
	return coordinator.New(coordinator.Options[string, Answer]{
		Name:     "lab",
		Tiers:    tiers,
		Lifetime: life,
		Refresh:  refresh,
		Load:     o.Query,
		Lease:    lease,
		Limits:   coordinator.Limits{LoadTimeout: 2*o.options.Latency + 10*time.Second},
		Logger:   slog.New(slog.DiscardHandler),
	})
}

// cached is a reader that is a cache.
type cached struct {
	cache *coordinator.Cache[string, Answer]
}

func (c cached) read(ctx context.Context, key string) (Answer, error) { return c.cache.Get(ctx, key) }
func (c cached) close(ctx context.Context) error                      { return c.cache.Close(ctx) }

func (c cached) warm(ctx context.Context, key string) error {
	_, err := c.cache.Get(ctx, key)
	return err
}

// fleet is caches as of several processes, each with an LRU of its own over one store
// that they share. Reads go to one after the other.
func fleet(name, does string, life policy.Lifetime, processes int, lease coordinator.Lease) Strategy {
	return Strategy{Name: name, Does: does, open: func(o *Origin, _ uint64) (reader, error) {
		r := new(caches)
		shared := storetest.NewMapBytes()
		for range processes {
			l2 := tier.Tier[string, Answer]{Name: "l2", Store: tier.Encode[string](shared.Another(), codec.JSON[Answer]())}
			c, err := newCache(o, life, policy.Fixed{}, lease, memory(), l2)
			if err != nil {
				return nil, errors.Join(err, r.close(context.Background()))
			}
			r.all = append(r.all, cached{c})
		}
		return r, nil
	}}
}

// caches are a reader that is several processes.
type caches struct {
	all  []cached
	next atomic.Int64
}

func (c *caches) read(ctx context.Context, key string) (Answer, error) {
	return c.all[int(c.next.Add(1)-1)%len(c.all)].read(ctx, key)
}

func (c *caches) warm(ctx context.Context, key string) error {
	for _, each := range c.all {
		if err := each.warm(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (c *caches) close(ctx context.Context) error {
	var errs []error
	for _, each := range c.all {
		errs = append(errs, each.close(ctx))
	}
	return errors.Join(errs...)
}
