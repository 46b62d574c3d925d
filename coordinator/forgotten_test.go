package coordinator_test

import (
	"context"
	"fmt"
	"strings"
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

// partly returns a shared store of which the part that has the keys "sick…" rests while it is
// told to.
func partly(rests *atomic.Bool) *hookedSwapper[string] {
	return hookSwapper(tier.Encode[string, string](storetest.NewMapBytes(), codec.JSON[string]()),
		func(_ context.Context, _, key string) error {
			if rests.Load() && strings.HasPrefix(key, "sick") {
				return resting{errDown}
			}
			return nil
		})
}

// C91: of the keys of a part that rests more are asked for than failed writes are remembered.
// What the other parts hold is served all the same, and what the part held is not once it is
// back, since the loads are newer.
func TestC91ManyKeysOfARestingPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 1000
		var rests atomic.Bool
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{{Name: "l2", Store: partly(&rests)}},
			Lifetime: policy.Lifetime{TTL: time.Hour},
			Limits:   coordinator.Limits{Recovery: 100},
			Load:     o.after(0, "new"),
		})
		for i := range keys {
			for _, part := range []string{"well", "sick"} {
				if err := c.Set(ctx, fmt.Sprint(part, i), "old"); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(time.Second)
		rests.Store(true)
		for i := range keys {
			wantGet(t, c, fmt.Sprint("sick", i), "new")
		}
		if s := c.Stats().Tiers[0]; s.Pending != 100 || s.Forgotten != keys-100 {
			t.Errorf("pending %d, forgotten %d", s.Pending, s.Forgotten)
		}
		before := o.calls.Load()
		for i := range keys {
			_, _ = c.Get(ctx, fmt.Sprint("well", i))
		}
		if loads := o.calls.Load() - before; loads > keys/50 {
			t.Errorf("%d of %d reads of keys of a part that is well were loads", loads, keys)
		}
		rests.Store(false)
		time.Sleep(time.Second)
		for i := range keys {
			wantGet(t, c, fmt.Sprint("sick", i), "new")
		}
		before = o.calls.Load()
		for i := range keys {
			wantGet(t, c, fmt.Sprint("sick", i), "new")
		}
		if loads := o.calls.Load() - before; loads > 0 {
			t.Errorf("%d of %d reads were loads, of what had been loaded since", loads, keys)
		}
	})
}

// W4: a failed store of what was loaded, which others may go on without until what they read
// ends, takes no place from a Delete, after which they may not.
func TestLoadsMakeRoomForWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deletes, loads = 10, 1000
		var rests atomic.Bool
		l2 := partly(&rests)
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{{Name: "l2", Store: l2}},
			Lifetime: policy.Lifetime{TTL: time.Hour},
			Limits:   coordinator.Limits{Recovery: 2 * deletes},
			Load:     func(context.Context, string) (string, error) { return "loaded", nil },
		})
		deleted := func(i int) string { return fmt.Sprint("sick, deleted ", i) }
		for i := range deletes {
			if err := c.Set(ctx, deleted(i), "old"); err != nil {
				t.Fatal(err)
			}
		}
		rests.Store(true)
		for i := range deletes {
			if err := c.Delete(ctx, deleted(i)); err == nil {
				t.Fatal("Delete did not fail")
			}
			if i%2 == 0 {
				wantGet(t, c, deleted(i), "loaded") // which takes the Delete's place in the queue
			}
		}
		for i := range loads {
			wantGet(t, c, fmt.Sprint("sick", i), "loaded")
		}
		rests.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := range deletes {
			if e, err := l2.store.Get(ctx, deleted(i)); err != nil || e != nil && e.Value() == "old" {
				t.Errorf("%s: others read what was deleted, or got error %v", deleted(i), err)
			}
		}
	})
}

// What had to be forgotten of a first tier in memory is not served from it, also when
// nothing waits to be written there any more; hits are direct again when all that it was
// about must be dead, or the tier has been cleared.
func TestForgottenWritesOfTheFirstTier(t *testing.T) {
	for _, end := range []string{"dead", "cleared"} {
		virtual(t, end, func(t *testing.T) {
			const keys = 100
			var down atomic.Bool
			top := &localHook{hook(storetest.NewMap[string, string](), func(_ context.Context, op, _ string) error {
				if op != "get" && down.Load() {
					return errDown
				}
				return nil
			})}
			var o origin
			c := newCache(t, coordinator.Options[string, string]{
				Tiers:    []tier.Tier[string, string]{{Name: "l1", Store: clearableTop{top}}},
				Lifetime: policy.Lifetime{TTL: time.Hour},
				Limits:   coordinator.Limits{Recovery: 10},
				Load:     o.after(0, "new"),
			})
			for i := range keys {
				if err := c.Set(ctx, fmt.Sprint(i), "old"); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			down.Store(true)
			for i := range keys {
				if err := c.Delete(ctx, fmt.Sprint(i)); err == nil {
					t.Fatal("Delete did not fail")
				}
			}
			down.Store(false)
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := c.Stats().Tiers[0].Pending; got != 0 {
				t.Fatalf("pending: got %d", got)
			}
			for i := range keys {
				wantGet(t, c, fmt.Sprint(i), "new")
			}
			wantCalls(t, &o, keys)
			for i := range keys {
				wantGet(t, c, fmt.Sprint(i), "new")
			}
			wantCalls(t, &o, keys)
			if coordinator.ServesFirst(c) {
				t.Error("hits do not ask whether the tier is trusted")
			}
			if end == "dead" {
				time.Sleep(time.Hour)
				wantGet(t, c, "1", "new") // a load
				wantGet(t, c, "1", "new")
			} else if err := c.Clear(ctx); err != nil {
				t.Fatal(err)
			}
			if !coordinator.ServesFirst(c) {
				t.Error("hits still ask whether the tier is trusted")
			}
		})
	}
}

type clearableTop struct{ *localHook }

func (c clearableTop) Clear(ctx context.Context) error { return c.store.(tier.Clearer).Clear(ctx) }
