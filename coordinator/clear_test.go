package coordinator_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// A failed Clear does not turn the hit path off for longer than what was there before can live.
func TestHitPathComesBackAfterFailedClear(t *testing.T) {
	top := &badClear{Map: storetest.NewMap[string, string]()}
	c := newCache(t, coordinator.Options[string, string]{
		Tiers:    []tier.Tier[string, string]{{Name: "l1", Store: top}},
		Lifetime: policy.Lifetime{TTL: 50 * time.Millisecond},
	})
	if err := c.Clear(ctx); err == nil {
		t.Fatal("Clear did not fail")
	}
	eventually(t, "a hit allocates nothing", func() bool {
		if err := c.Set(ctx, "k", "v"); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Get(ctx, "k")
		return testing.AllocsPerRun(10, func() { _, _ = c.Get(ctx, "k") }) == 0
	})
}

type badClear struct{ *storetest.Map[string, string] }

func (*badClear) Clear(context.Context) error { return errDown }

// A Clear that fails in a tier does not forget the deletions that the tier lacks.
func TestFailedClearKeepsPendingDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewMapBytes()
		fb := storetest.NewFaultyBytes(m.Another())
		fb.SetRemote()
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", fb)}})
		b := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}})
		_ = c.Set(ctx, "k", "v1")
		fb.Inject(storetest.Fail(errors.New("down")), storetest.Set, storetest.SetIf, storetest.Clear)
		_ = c.Delete(ctx, "k") // pending for l3
		if err := c.Clear(ctx); err == nil {
			t.Error("Clear did not fail")
		}
		fb.Heal()
		time.Sleep(30 * time.Second)
		if v, err := b.Get(ctx, "k"); err == nil {
			t.Errorf("the Delete was promised to be tried again; a failed Clear dropped it; other process still reads %q", v)
		}
	})
}
