package coordinator_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

var (
	ctx   = context.Background()
	quiet = slog.New(slog.NewTextHandler(io.Discard, nil))
)

// memory returns a tier over the simplest store.
func memory[V any](name string) tier.Tier[string, V] {
	return tier.Tier[string, V]{Name: name, Store: storetest.NewMap[string, V]()}
}

// shared returns a tier over a byte store, as a remote one would be.
func shared[V any](name string, b tier.Bytes) tier.Tier[string, V] {
	return tier.Tier[string, V]{Name: name, Store: tier.Encode[string, V](b, codec.JSON[V]())}
}

// newCache makes a cache with a lifetime of a minute unless the options say
// otherwise, and closes it at the end of the test.
func newCache[K comparable, V any](t testing.TB, o coordinator.Options[K, V]) *coordinator.Cache[K, V] {
	t.Helper()
	if o.Lifetime == (policy.Lifetime{}) {
		o.Lifetime.TTL = time.Minute
	}
	if o.Logger == nil {
		o.Logger = quiet
	}
	c, err := coordinator.New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// virtual runs a test in virtual time.
func virtual(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// origin counts what is asked of it.
type origin struct {
	calls   atomic.Int64
	running atomic.Int64
	peak    atomic.Int64
}

// enter counts a call, until the returned function is called.
func (o *origin) enter() func() {
	o.calls.Add(1)
	n := o.running.Add(1)
	for {
		peak := o.peak.Load()
		if n <= peak || o.peak.CompareAndSwap(peak, n) {
			break
		}
	}
	return func() { o.running.Add(-1) }
}

// after returns a loader that gives the value after a time.
func (o *origin) after(d time.Duration, value string) coordinator.Loader[string, string] {
	return func(ctx context.Context, _ string) (string, error) {
		defer o.enter()()
		return value, sleep(ctx, d)
	}
}

// sleep sleeps unless the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// many calls f n times at once and waits for all.
func many(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(i)
		}()
	}
	wg.Wait()
}

func wantCalls(t *testing.T, o *origin, want int64) {
	t.Helper()
	if got := o.calls.Load(); got != want {
		t.Errorf("origin calls: got %d, want %d", got, want)
	}
}

func wantGet[K comparable, V comparable](t *testing.T, c *coordinator.Cache[K, V], key K, want V) {
	t.Helper()
	if got, err := c.Get(ctx, key); err != nil || got != want {
		t.Errorf("Get(%v): got %v, %v, want %v", key, got, err, want)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}
