package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// A change is made whole or not at all: a policy may need the lifetime that comes
// with it.
func TestReconfigureIsWhole(t *testing.T) {
	c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")}})
	window := policy.Lifetime{TTL: time.Minute, StaleWhileRevalidate: time.Second}
	bad := coordinator.Limits{Flights: -1}
	for _, test := range []struct {
		change coordinator.Change
		policy string // after it
		err    string
	}{
		{coordinator.Change{Refresh: policy.StaleWhileRevalidate{}}, "fixed", "window"},
		{coordinator.Change{Refresh: policy.StaleWhileRevalidate{}, Lifetime: &window, Limits: &bad}, "fixed", "Flights"},
		{coordinator.Change{Refresh: policy.StaleWhileRevalidate{}, Lifetime: &window}, "swr", ""},
		{coordinator.Change{Lifetime: &policy.Lifetime{TTL: time.Minute}}, "swr", "window"},
		{coordinator.Change{Lifetime: &policy.Lifetime{TTL: time.Minute}, Refresh: policy.XFetch{}}, "xfetch", ""},
		{coordinator.Change{}, "xfetch", ""},
	} {
		for what, change := range map[string]func(coordinator.Change) error{"CheckChange": c.CheckChange, "Reconfigure": c.Reconfigure} {
			err := change(test.change)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("%s(%+v): got %v, want an error with %q", what, test.change, err, test.err)
			}
		}
		if got := c.Stats().Policy; got != test.policy {
			t.Errorf("after %+v: policy %s, want %s", test.change, got, test.policy)
		}
	}
}

// A lower limit of flights lets those under way go on and nobody else in; a higher
// one lets in at once who waits.
func TestLimitsChangeLive(t *testing.T) {
	virtual(t, "flights", func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		loading := 0
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:  []tier.Tier[string, string]{memory[string]("l1")},
			Limits: coordinator.Limits{Flights: 3},
			Load: func(_ context.Context, key string) (string, error) {
				mu.Lock()
				loading++
				mu.Unlock()
				<-release
				return key, nil
			},
		})
		under := func() int {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return loading
		}
		var done sync.WaitGroup
		get := func(n int) {
			key := fmt.Sprint("key ", n)
			done.Go(func() {
				if v, err := c.Get(t.Context(), key); v != key || err != nil {
					t.Errorf("Get(%s) = %q, %v", key, v, err)
				}
			})
		}
		limit := func(n int) {
			if err := c.Reconfigure(coordinator.Change{Limits: &coordinator.Limits{Flights: n}}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			get(i)
		}
		if got := under(); got != 3 {
			t.Fatalf("%d loads under way, want 3", got)
		}
		limit(1)
		for i := range 4 {
			get(3 + i)
		}
		if got := under(); got != 3 {
			t.Fatalf("%d loads began after the limit was lowered, want none", got-3)
		}
		release <- struct{}{}
		release <- struct{}{}
		if got := under(); got != 3 {
			t.Fatalf("%d loads began while the lower limit was reached, want none", got-3)
		}
		release <- struct{}{}
		if got := under(); got != 4 {
			t.Fatalf("%d loads began when there was room for one", got-3)
		}
		limit(3)
		if got := under(); got != 6 {
			t.Fatalf("%d loads began in all after the limit was raised to 3, want 3", got-3)
		}
		close(release)
		done.Wait()
		if got := c.Stats().Flights; got != 0 {
			t.Errorf("%d flights at the end, want 0", got)
		}
	})
	virtual(t, "load timeout", func(t *testing.T) {
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{memory[string]("l1")},
			Load: func(ctx context.Context, _ string) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			},
		})
		for _, limit := range []time.Duration{3 * time.Second, 40 * time.Second} {
			if err := c.Reconfigure(coordinator.Change{Limits: &coordinator.Limits{LoadTimeout: limit}}); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if _, err := c.Get(t.Context(), "key"); err == nil {
				t.Error("got a value, want the loader's time to end")
			}
			if got := time.Since(start); got != limit {
				t.Errorf("the load ended after %v, want %v", got, limit)
			}
		}
	})
}

type resizable struct {
	tier.Store[string, string]
	capacity int64
}

func (r *resizable) Resize(capacity int64) error {
	r.capacity = capacity
	return nil
}

func (r *resizable) Eviction() string { return "any" }

// Resize reaches the tier of that name, and says where a store cannot.
func TestResize(t *testing.T) {
	l1 := memory[string]("l1")
	store := &resizable{Store: l1.Store}
	l1.Store = store
	c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{l1, memory[string]("l2")}})
	if err := c.Resize("l1", 7); err != nil || store.capacity != 7 {
		t.Errorf("Resize(l1, 7): %v, the store was told %d", err, store.capacity)
	}
	if err := c.Resize("l2", 7); !errors.Is(err, tier.ErrNotResizable) {
		t.Errorf("Resize of a store that cannot: %v, want ErrNotResizable", err)
	}
	if err := c.Resize("l3", 7); err == nil || !strings.Contains(err.Error(), `"l3"`) {
		t.Errorf("Resize of a tier that is not there: %v", err)
	}
	if got := c.Stats().Tiers[0].Eviction; got != "any" {
		t.Errorf("Eviction in Stats: %q, want the store's", got)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Resize("l1", 8); !errors.Is(err, coordinator.ErrClosed) {
		t.Errorf("Resize after Close: %v, want ErrClosed", err)
	}
}
