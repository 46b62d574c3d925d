package main

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// chain is a Terrace of any number of tiers whose values are bytes.
type chain struct {
	*coordinator.Cache[string, []byte]
	client *goredis.Client // of the last tier; nil where that is in memory
	value  []byte          // what is loaded and set
}

// chainSetup says what a chain is made of.
type chainSetup struct {
	tiers   int
	upper   int    // entries of each tier but the last
	last    int    // entries of the last
	redis   string // address; else the last is in memory too
	value   int    // bytes
	noLoads bool   // a read of what is not there is an error
}

func openChain(s chainSetup) (*chain, error) {
	c := &chain{value: make([]byte, s.value)}
	var tiers []tier.Tier[string, []byte]
	for i := range s.tiers - 1 {
		tiers = append(tiers, tier.Tier[string, []byte]{Name: fmt.Sprintf("l%d", i+1), Store: sieve.New[string, []byte](s.upper)})
	}
	last := tier.Tier[string, []byte]{Name: "last"}
	if s.redis == "" {
		last.Store = sieve.New[string, []byte](s.last)
	} else {
		c.client = goredis.NewClient(goRedisOptions(s.redis))
		last.Store = tier.Encode[string](redis.New(c.client), codec.Raw())
	}
	o := coordinator.Options[string, []byte]{
		Tiers:    append(tiers, last),
		Lifetime: policy.Lifetime{TTL: remoteTTL},
		Refresh:  policy.XFetch{},
	}
	if !s.noLoads {
		o.Load = func(context.Context, string) ([]byte, error) { return c.value, nil }
	}
	var err error
	if c.Cache, err = coordinator.New(o); err != nil {
		c.release()
	}
	return c, err
}

func (c *chain) release() {
	if c.client != nil {
		_ = c.client.Close()
	}
}

func (c *chain) close() {
	_ = c.Close(request)
	c.release()
}

// fill sets all keys.
func (c *chain) fill(keys []string) error {
	for _, key := range keys {
		if err := c.Set(request, key, c.value); err != nil {
			return err
		}
	}
	return nil
}

// hitsIn returns the hits of a tier; one below 0 counts from the last.
func (c *chain) hitsIn(i int) uint64 {
	tiers := c.Stats().Tiers
	if i < 0 {
		i += len(tiers)
	}
	return tiers[i].Hits
}

// deed is an operation on a chain.
type deed func(c *chain, key string) error

var errSize = errors.New("a value has another size than was written")

func getDeed(c *chain, key string) error {
	v, err := c.Get(request, key)
	if err == nil && len(v) != len(c.value) {
		err = errSize
	}
	return err
}

func setDeed(c *chain, key string) error { return c.Set(request, key, c.value) }

// onKeys does the deed to one key after the other and goes on where it was.
func onKeys(c *chain, keys *turn, do deed) body {
	return func(_, n int) error {
		for range n {
			if err := do(c, keys.next()); err != nil {
				return err
			}
		}
		return nil
	}
}

// turn is a sequence of keys that begins again at its end.
type turn struct {
	keys []string
	at   int
}

func (t *turn) next() string {
	key := t.keys[t.at]
	if t.at++; t.at == len(t.keys) {
		t.at = 0
	}
	return key
}
