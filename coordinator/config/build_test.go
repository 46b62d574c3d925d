package config_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/coordinator/config"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

type product struct {
	Name string
	Tags []string
}

func load(_ context.Context, key string) (product, error) {
	return product{Name: "of " + key, Tags: []string{strings.Repeat("t", 3000)}}, nil
}

// build makes a cache that is closed with the test.
func build[V any](t *testing.T, text, name string, code config.Code[string, V], o config.Options) *coordinator.Cache[string, V] {
	t.Helper()
	doc, err := config.Parse("caches.yaml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	code.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	c, err := config.Build(doc, name, code)
	if err != nil {
		t.Fatal(err)
	}
	closeWith(t, c.Close)
	return c
}

func closeWith(t *testing.T, close func(context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// The issue's own document runs on a real server: what one cache loads another finds,
// under a new key too, and what is stored is neither text nor as long as it was.
func TestBuildOnARealServer(t *testing.T) {
	server := servers.Redis(t)
	const second = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
	with := func() config.Options {
		return config.Options{Env: func(name string) (string, bool) {
			if name == "REDIS_URL" {
				return "redis://" + server.Addr(), true
			}
			return env(name)
		}}
	}
	loads := 0
	code := config.Code[string, product]{Load: func(ctx context.Context, key string) (product, error) {
		loads++
		return load(ctx, key)
	}}
	rotate := func(keys string) string {
		return strings.Replace(whole, `{key: "${CACHE_KEY}"}`, "{keys: ["+keys+"]}", 1)
	}
	for i, text := range []string{whole, rotate("'" + second + "', '${CACHE_KEY}'"), rotate("'" + second + "'"), rotate("'" + second + "', '${CACHE_KEY}'")} {
		c := build(t, text, "products", code, with())
		r, err := c.Lookup(ctx, "sku")
		if err != nil || r.Value.Name != "of sku" || len(r.Value.Tags) != 1 {
			t.Fatalf("%d: got %+v, %v", i, r, err)
		}
		if want := []string{"", "l3", "", "l3"}[i]; r.Tier != want {
			t.Errorf("%d: from tier %q, want %q", i, r.Tier, want)
		}
		if s := c.Stats(); s.Policy != "xfetch" || s.Tiers[0].Eviction != "2q" || s.Tiers[1].Eviction != "tinylfu" || s.Tiers[2].Eviction != "" {
			t.Errorf("%d: Stats tell policy %q, evictions %q %q %q", i, s.Policy, s.Tiers[0].Eviction, s.Tiers[1].Eviction, s.Tiers[2].Eviction)
		}
	}
	if loads != 2 {
		t.Errorf("%d loads, want 2: the key that could not be read loads again", loads)
	}
	raw := build(t, small("backend: redis, prefix: 'products:', url: 'redis://"+server.Addr()+"', codec: raw", goodLife, ""), "c", config.Code[string, []byte]{}, config.Options{})
	if v, err := raw.Get(ctx, "sku"); !errors.Is(err, coordinator.ErrMiss) {
		t.Errorf("a cache of another type, without the key, read %q, %v", v, err)
	}
}

// What the document says and the type cannot do is told with its place.
func TestBuildFaults(t *testing.T) {
	shared := func(codec string) string {
		return small("backend: memcached, servers: ['127.0.0.1:1'], codec: "+codec, goodLife, "")
	}
	type secretive struct{ _ int }
	for _, test := range []struct {
		name  string
		build func() error
		want  string
	}{
		{"raw of a struct", failing[product](t, shared("raw")), `caches.yaml:4:73: caches.c.tiers.l1.codec: "raw": raw carries []byte and string, not values of config_test.product`},
		{"json of a channel", failing[chan int](t, shared("json")), "json cannot carry values of chan int"},
		{"json of a function inside", failing[struct{ A []func() }](t, shared("json")), ".A is a func"},
		{"json of odd keys", failing[map[pair]int](t, shared("json")), "whose keys, config_test.pair, are neither text nor whole numbers"},
		{"msgpack of a complex", failing[*complex128](t, shared("msgpack")), "a complex number"},
		{"gob of nothing", failing[secretive](t, shared("gob")), "without exported fields"},
		{"no such cache", func() error {
			doc, err := parse(t, whole)
			if err != nil {
				return err
			}
			_, err = config.Build(doc, "product", config.Code[string, int]{})
			return err
		}, `there is no cache "product": there is products; did you mean products?`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.build()
			var faults config.Faults
			if !errors.As(err, &faults) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a fault with %q", err, test.want)
			}
		})
	}
	for name, good := range map[string]func() error{
		"raw of bytes":     failing[[]byte](t, shared("raw")),
		"raw of a string":  failing[string](t, shared("raw")),
		"json of a time":   failing[struct{ At time.Time }](t, shared("json")),
		"json of anything": failing[any](t, shared("json")),
		"json of itself":   failing[*list](t, shared("json")),
	} {
		if err := good(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type pair struct{ A, B int }

type list struct {
	Next *list
	N    int
}

func failing[V any](t *testing.T, text string) func() error {
	return func() error {
		doc, err := parse(t, text)
		if err != nil {
			return err
		}
		c, err := config.Build(doc, "c", config.Code[string, V]{})
		if err == nil {
			return c.Close(ctx)
		}
		return err
	}
}

// Each eviction runs by its name, in entries, and in bytes where it can count them.
func TestEvictions(t *testing.T) {
	for _, eviction := range []string{"lru", "2q", "arc", "sieve", "tinylfu", "w-tinylfu"} {
		for _, capacity := range []string{"1000", "1MiB"} {
			text := small("backend: memory, eviction: "+eviction+", capacity: "+capacity, goodLife, "")
			if _, err := parse(t, text); err != nil {
				if capacity == "1MiB" && eviction != "tinylfu" && eviction != "w-tinylfu" {
					continue
				}
				t.Fatal(err)
			}
			c := build(t, text, "c", config.Code[string, []byte]{Load: func(_ context.Context, key string) ([]byte, error) {
				return make([]byte, 4000), nil
			}}, config.Options{})
			for i := range 3000 {
				if _, err := c.Get(ctx, fmt.Sprint(i)); err != nil {
					t.Fatal(err)
				}
			}
			s := c.Stats().Tiers[0]
			if s.Eviction != eviction {
				t.Errorf("%s: Stats tell %q", eviction, s.Eviction)
			}
			if u := s.Usage; capacity == "1000" && u.Entries > 1000 {
				t.Errorf("%s: %d entries, want at most 1000", eviction, u.Entries)
			}
		}
	}
}

// Two caches of one document, as two processes build them, tell each other what they
// write, over each kind of bus, and leave nothing behind.
func TestBusOfADocument(t *testing.T) {
	server := servers.Redis(t)
	for _, bus := range []string{"pubsub", "tracking", "both", "{kind: pubsub, channel: mine, heartbeat: 100ms, clamp: forever}"} {
		t.Run(bus, func(t *testing.T) {
			text := fmt.Sprintf(`
caches:
  products:
    tiers:
      - {name: l1, backend: lru, capacity: 100}
      - {name: l3, backend: redis, url: "redis://%s", prefix: "%x:"}
    lifetime: {ttl: 5m, jitter: 10%%}
    bus: %s
`, server.Addr(), bus, bus)
			a := build(t, text, "products", config.Code[string, string]{}, config.Options{})
			b := build(t, text, "products", config.Code[string, string]{}, config.Options{})
			until(t, "both are connected", func() bool {
				for _, c := range []*coordinator.Cache[string, string]{a, b} {
					s := c.Stats()
					if bus != "tracking" && !s.Bus.Connected || (bus == "tracking" || bus == "both") && !s.Tracking.Connected {
						return false
					}
				}
				return true
			})
			for i := range 20 {
				value := fmt.Sprint(i)
				if err := a.Set(ctx, "key", value); err != nil {
					t.Fatal(err)
				}
				until(t, "the other reads "+value, func() bool {
					v, err := b.Get(ctx, "key")
					return err == nil && v == value
				})
			}
		})
	}
}

// until polls.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10s: %s", what)
		}
	}
}
