package coordinator_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// The failures of keys that are cooling down are bounded, and those of keys at rest are
// forgotten.
func TestCooldownsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, most = 70_000, 1 << 16
		fail := true
		c := newCache(t, coordinator.Options[int, int]{Tiers: []tier.Tier[int, int]{{Name: "l1", Store: storetest.NewMap[int, int]()}},
			Lifetime: policy.Lifetime{TTL: time.Second, StaleIfError: time.Minute},
			Load: func(context.Context, int) (int, error) {
				if fail {
					return 0, errors.New("x")
				}
				return 1, nil
			}})
		for i := range n {
			if err := c.Set(ctx, i, i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		for i := range n {
			if _, err := c.Get(ctx, i); err != nil {
				t.Fatal(err)
			}
		}
		if got := coordinator.CooldownsOf(c); got > most || got < most/2 {
			t.Errorf("cool-downs: got %d, want at most %d", got, most)
		}
		fail = false
		time.Sleep(24 * time.Hour)
		for i := range 1000 {
			c.Get(ctx, -i)
		}
		if n := coordinator.CooldownsOf(c); n > 0 {
			t.Errorf("a day later %d keys at rest are remembered", n)
		}
	})
}

// A failure cools one key down and no other.
func TestCooldownIsOfOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := map[string]int{}
		fail := false
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")},
			Lifetime: policy.Lifetime{TTL: time.Second, StaleIfError: time.Hour},
			Load: func(_ context.Context, k string) (string, error) {
				n[k]++
				if fail && k == "a" {
					return "", errors.New("x")
				}
				return "v", nil
			}})
		c.Get(ctx, "a")
		c.Get(ctx, "b")
		time.Sleep(2 * time.Second)
		fail = true
		c.Get(ctx, "a")
		r, err := c.Lookup(ctx, "b")
		if n["b"] != 2 {
			t.Errorf("b was not loaded because a failed: loads %v, %v %v (now %d)", n, r.State, err, tier.Now())
		}
	})
}

// The failure of a load that a Set has overtaken cools nothing down.
func TestOvertakenFailureDoesNotCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{memory[string]("l1")},
			Lifetime: policy.Lifetime{TTL: 100 * time.Millisecond, StaleIfError: time.Hour},
			Backoff:  policy.Backoff{Initial: 10 * time.Second},
			Load: func(ctx context.Context, _ string) (string, error) {
				if n.Add(1) == 2 {
					_ = sleep(ctx, time.Second)
					return "", errors.New("x")
				}
				return "fresh", nil
			}})
		c.Get(ctx, "k")
		time.Sleep(200 * time.Millisecond)
		go c.Get(ctx, "k") // load 2, fails at 1.2 s
		time.Sleep(500 * time.Millisecond)
		_ = c.Set(ctx, "k", "set")
		time.Sleep(time.Second)
		r, _ := c.Lookup(ctx, "k")
		if n.Load() != 3 {
			t.Errorf("the Set cleared the cool-down, the overtaken load set it again: loads %d, %q %v", n.Load(), r.Value, r.State)
		}
	})
}
