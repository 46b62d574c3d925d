package coordinator_test

import (
	"context"
	"testing"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// told remembers the last ttl that a store was told.
type told struct {
	tier.Store[string, string]
	byEntry bool
	ttl     time.Duration
}

func (t *told) Local() bool { return true }

func (t *told) EndsByEntry() bool { return t.byEntry }

func (t *told) Set(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
	t.ttl = ttl
	return t.Store.Set(ctx, key, e, ttl)
}

// A local store that goes by the ttl alone is told the life that is left (T1); one that
// goes by the entry's own end only what the tier adds to that.
func TestLocalStoresAreToldTheirTTL(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		plain := &told{Store: storetest.NewMap[string, string]()}
		lean := &told{Store: storetest.NewMap[string, string](), byEntry: true}
		capped := &told{Store: storetest.NewMap[string, string](), byEntry: true}
		bottom := storetest.NewMap[string, string]()
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{
				{Name: "plain", Store: plain}, {Name: "lean", Store: lean}, {Name: "capped", Store: capped, TTL: time.Second}, {Name: "bottom", Store: bottom},
			},
			Lifetime: policy.Lifetime{TTL: time.Minute},
		})
		if err := c.Set(ctx, "key", "v"); err != nil {
			t.Fatal(err)
		}
		check := func(what string, left time.Duration) {
			t.Helper()
			if plain.ttl != left || lean.ttl != tier.Forever || capped.ttl != time.Second {
				t.Errorf("%s: told %v, %v and %v; want %v, for ever and 1s", what, plain.ttl, lean.ttl, capped.ttl, left)
			}
		}
		check("Set", time.Minute)
		for _, s := range []*told{plain, lean, capped} {
			_ = s.Delete(ctx, "key")
		}
		time.Sleep(20 * time.Second)
		if _, err := c.Get(ctx, "key"); err != nil {
			t.Fatal(err)
		}
		check("a fill", 40*time.Second)
	})
}
