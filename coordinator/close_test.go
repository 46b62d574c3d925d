package coordinator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// Close waits for a Set under way.
func TestCloseWaitsForSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := storetest.NewFaulty(storetest.NewMap[string, string]())
		fs.SetRemote()
		fs.Inject(storetest.Slow(400*time.Millisecond), storetest.Set)
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1"), {Name: "l2", Store: fs}}})
		done := make(chan error, 1)
		go func() { done <- c.Set(ctx, "k", "v") }()
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		_ = c.Close(ctx)
		t.Logf("Close took %v", time.Since(began))
		if time.Since(began) < 300*time.Millisecond {
			t.Errorf("Close did not wait for the Set under way")
		}
		if err := <-done; err != nil {
			t.Errorf("Set: %v", err)
		}
	})
}

// An idle cache has nothing to cancel.
func TestCloseIdleWithEndedContext(t *testing.T) {
	bad := 0
	for range 200 {
		c, _ := coordinator.New(coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")}, Lifetime: policy.Lifetime{TTL: time.Minute}})
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := c.Close(ended); err != nil {
			bad++
		}
	}
	if bad > 0 {
		t.Errorf("%d of 200 idle Closes claim to have cancelled something", bad)
	}
}
