package coordinator_test

import (
	"context"
	"errors"
	"runtime"
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

// A store that calls runtime.Goexit ends the goroutine that it was called on, as a mock
// that fails its test means to, be that its caller's own. Nothing of the cache is left
// behind: no place, no turn, no permit of a breaker, and nobody who waits (L3).
func TestGoexitInAStoreLeavesNothing(t *testing.T) {
	calls := map[string]func(*coordinator.Cache[string, string]){
		"Get":       func(c *coordinator.Cache[string, string]) { _, _ = c.Get(ctx, "k") },
		"Lookup":    func(c *coordinator.Cache[string, string]) { _, _ = c.Lookup(ctx, "k") },
		"GetOrLoad": func(c *coordinator.Cache[string, string]) { _, _ = c.GetOrLoad(ctx, "k", nil) },
		"Peek":      func(c *coordinator.Cache[string, string]) { _, _ = c.Peek(ctx, "k") },
		"Set":       func(c *coordinator.Cache[string, string]) { _ = c.Set(ctx, "k", "set") },
		"Delete":    func(c *coordinator.Cache[string, string]) { _ = c.Delete(ctx, "k") },
		"Expire":    func(c *coordinator.Cache[string, string]) { _ = c.Expire(ctx, "k") },
		"Clear":     func(c *coordinator.Cache[string, string]) { _ = c.Clear(ctx) },
		"a Get who may leave": func(c *coordinator.Cache[string, string]) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			_, _ = c.Get(ctx, "k")
		},
		"a Get in a hurry": func(c *coordinator.Cache[string, string]) {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_, _ = c.Get(ctx, "k")
		},
	}
	for name, call := range calls {
		for _, where := range []string{"in memory", "remote", "remote and punctual", "the probe"} {
			for _, held := range []bool{false, true} {
				virtual(t, name+", "+where, func(t *testing.T) { exitInStore(t, call, where, held) })
			}
		}
	}
}

// exitInStore has each call of the store in turn end its goroutine: the first of what is
// done, the second, and so on. What is read is held below, or nowhere.
func exitInStore(t *testing.T, call func(*coordinator.Cache[string, string]), where string, held bool) {
	for nth := int64(1); nth <= 6; nth++ {
		server := storetest.NewMapBytes()
		l1, l3 := storetest.NewFaulty(storetest.NewMap[string, string]()), storetest.NewFaultyBytes(server)
		l3.SetRemote()
		var remote tier.Store[string, string] = tier.Encode[string](l3, codec.JSON[string]())
		if where == "remote and punctual" || where == "the probe" {
			remote = punctualStore{remote}
		}
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{
				{Name: "l1", Store: l1},
				{Name: "l3", Store: remote, Timeout: time.Second, Breaker: tier.Breaker{Failures: 1, Probe: time.Second}},
			},
			Lifetime: policy.Lifetime{TTL: time.Minute},
			Limits:   coordinator.Limits{Flights: 2, Loads: 1},
			Backoff:  policy.Backoff{Initial: 10 * time.Millisecond, Max: 100 * time.Millisecond},
			Load:     func(context.Context, string) (string, error) { return "loaded", nil },
		})
		if held {
			writer := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", server.Another())}})
			for _, key := range []string{"k", "l", "m"} {
				if err := writer.Set(ctx, key, "held"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if where == "the probe" { // of a breaker that has opened
			l3.Inject(storetest.Fail(context.DeadlineExceeded))
			_, _ = c.Peek(ctx, "elsewhere") // no write that is tried again takes the probe
			if got := c.Stats().Tiers[1].Breaker; got != "open" {
				t.Fatalf("the breaker is %s", got)
			}
			time.Sleep(1100 * time.Millisecond)
		}
		var n atomic.Int64
		exit := func(ctx context.Context, _ storetest.Call, do func() error) error {
			_ = sleep(ctx, 10*time.Millisecond) // others join meanwhile
			if n.Add(1) == nth {
				runtime.Goexit()
			}
			return do()
		}
		if where == "in memory" {
			l1.Inject(exit)
		} else {
			l3.Inject(exit)
		}
		var all sync.WaitGroup
		all.Go(func() { call(c) })
		time.Sleep(5 * time.Millisecond)
		for range 3 {
			all.Go(func() {
				if v, err := c.Get(ctx, "k"); err != nil && !errors.Is(err, coordinator.ErrGoexit) || err == nil && v == "" {
					t.Errorf("call %d exits: who waits gets %q, %v", nth, v, err)
				}
			})
		}
		all.Wait() // WaitGroup.Go counts a goroutine that exits as done
		l1.Heal()
		l3.Heal()
		time.Sleep(3 * time.Second) // the breaker lets a probe through
		synctest.Wait()
		if s := c.Stats(); s.Flights != 0 || s.Keys != 0 {
			t.Errorf("call %d exits: at rest %d flights, %d keys", nth, s.Flights, s.Keys)
		}
		if err := c.Set(ctx, "k", "after"); err != nil {
			t.Errorf("call %d exits: Set after it: %v", nth, err)
		}
		wantGet(t, c, "k", "after")
		wantGet(t, c, "another", "loaded")
		if s := c.Stats().Tiers[1]; s.Breaker != "closed" || s.Pending != 0 {
			t.Errorf("call %d exits: at last the breaker is %s, %d writes wait", nth, s.Breaker, s.Pending)
		}
		began := time.Now()
		if err := c.Close(ctx); err != nil || time.Since(began) > time.Second {
			t.Errorf("call %d exits: Close took %v, %v", nth, time.Since(began), err)
		}
	}
}
