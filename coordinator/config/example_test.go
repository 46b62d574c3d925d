package config_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"log"
	"time"

	"github.com/terracecache/terrace/coordinator/config"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

func Example() {
	doc, err := config.Parse("caches.yaml", []byte(`
caches:
  greetings:
    tiers:
      - {name: l1, backend: lru, capacity: 1_000, ttl: 30s}
      - {name: l2, backend: ristretto, capacity: 64MiB}
    lifetime: {ttl: 5m, jitter: 10%, stale_if_error: 1h}
    refresh: {policy: xfetch}
`), config.Options{})
	if err != nil {
		log.Fatal(err) // all that is wrong, each with its line
	}
	fmt.Println(doc)
	cache, err := config.Build(doc, "greetings", config.Code[string, string]{
		Load: func(_ context.Context, name string) (string, error) { return "hello " + name, nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close(context.Background())
	fmt.Println(cache.Get(context.Background(), "world"))

	// Output:
	// greetings: l1 lru (lru, 1_000 entries, ttl 30s) → l2 ristretto (tinylfu, 64MiB); ttl 5m ± 10%, stale if error 1h; refresh xfetch (beta 1)
	// hello world <nil>
}

// What a program of one's own adds: a policy, a backend, an eviction and a codec.
func ExampleRegistry() {
	r := config.NewRegistry()
	for _, err := range []error{
		r.RegisterPolicy("half-life", newHalfLife),
		r.RegisterBytes("disk", newDisk),
		config.RegisterEviction(r, "never", newNever),
		r.RegisterCodec("gob64", gob64{}),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
	doc, err := config.Parse("caches.yaml", []byte(`
caches:
  greetings:
    tiers:
      - {name: l1, backend: memory, eviction: never, capacity: 10}
      - {name: l2, backend: disk, options: {directory: /var/cache}, codec: gob64}
    lifetime: {ttl: 5m}
    refresh: {policy: half-life, options: {share: 0.5}}
`), config.Options{Registry: r})
	if err != nil {
		log.Fatal(err)
	}
	cache, err := config.Build(doc, "greetings", config.Code[string, string]{
		Load: func(_ context.Context, name string) (string, error) { return "hello " + name, nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close(context.Background())
	fmt.Println(cache.Get(context.Background(), "world"))
	s := cache.Stats()
	fmt.Println(s.Policy, s.Tiers[0].Eviction)

	_, err = config.Parse("caches.yaml", []byte(`
caches:
  greetings:
    tiers: [{name: l2, backend: disk, options: {direktory: /var/cache}}]
    lifetime: {ttl: 5m}
    refresh: {policy: half-live}
`), config.Options{Registry: r})
	fmt.Println(err)

	// Output:
	// hello world <nil>
	// half-life never
	// caches.yaml:6:23: caches.greetings.refresh.policy: "half-live": want fixed, half-life, swr or xfetch; did you mean half-life?
}

// halfLife refreshes in the background once a share of an entry's life is over.
type halfLife struct {
	Share float64 `yaml:"share"`
}

func newHalfLife(options config.Params) (policy.Strategy, error) {
	h := halfLife{Share: 0.5}
	return h, options.Decode(&h)
}

func (halfLife) Name() string { return "half-life" }

func (h halfLife) Decide(r policy.Reading) policy.Decision {
	switch life := r.Age + r.FreshFor; {
	case r.FreshFor <= 0:
		return policy.Load
	case float64(r.Age) > h.Share*float64(life):
		return policy.Refresh
	default:
		return policy.Serve
	}
}

// newDisk stands for a byte store of one's own.
func newDisk(options config.Params) (tier.Bytes, error) {
	var o struct {
		Directory string `yaml:"directory"`
	}
	if err := options.Decode(&o); err != nil {
		return nil, err
	}
	return storetest.NewMapBytes(), nil
}

// never holds all it is given.
type never struct{ tier.Store[string, string] }

func (never) Eviction() string { return "never" }

func newNever(int, config.Params) (tier.Store[string, string], error) {
	return never{storetest.NewMap[string, string]()}, nil
}

type gob64 struct{}

func (gob64) Append(dst []byte, value any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	err := gob.NewEncoder(b).Encode(value)
	return b.Bytes(), err
}

func (gob64) Decode(data []byte, into any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(into)
}

// A set follows its file: live fields are applied, the others are named.
func ExampleWatch() {
	var set *config.Set // from config.Open
	report := func(changes config.Changes, err error) {
		if err != nil {
			log.Print(err) // the caches stay as they are
		}
		for _, c := range changes.Applied {
			log.Print("applied ", c)
		}
		for _, c := range changes.NotLive {
			log.Print("waits for a restart: ", c)
		}
	}
	if set != nil {
		ctx, stop := context.WithTimeout(context.Background(), time.Hour)
		defer stop()
		_ = config.Watch(ctx, set, config.WatchOptions{Report: report})
	}
}
