package coordinator

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

// P2: who sees that a connection is back, or lost, is served nothing any more that the tiers in
// memory held before.
func TestAConnectionIsSeenBehindWhatItHasDropped(t *testing.T) {
	c, err := New(Options[string, string]{
		Tiers: []tier.Tier[string, string]{
			{Name: "l1", Store: lru.New[string, string](10)},
			{Name: "l2", Store: tier.Encode[string, string](storetest.NewMapBytes(), codec.JSON[string]())},
		},
		Lifetime: policy.Lifetime{TTL: time.Hour},
		Bus:      storetest.NewBusHub().Open(),
		Track:    true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for _, told := range []struct {
		name      string
		by        tier.BusHandler
		connected func() bool
	}{
		{"bus", listener[string, string]{c.bus}, func() bool { return c.Stats().Bus.Connected }},
		{"tracking", busLike[string, string]{trackingListener[string, string]{c.tracking}}, func() bool { return c.Stats().Tracking.Connected }},
	} {
		for !told.connected() {
			runtime.Gosched()
		}
		for range 20 {
			for _, now := range []bool{false, true} {
				c.above.mu.Lock() // nothing can be dropped
				done := make(chan struct{})
				go func() {
					defer close(done)
					if now {
						told.by.Connected()
					} else {
						told.by.Lost(errors.New("lost"))
					}
				}()
				early := false
				for range 1000 {
					runtime.Gosched()
					early = early || told.connected() == now
				}
				c.above.mu.Unlock()
				<-done
				if early || told.connected() != now {
					t.Fatalf("%s: connected %v was seen before all was dropped: %v, or not behind it", told.name, now, early)
				}
			}
		}
	}
}

// busLike is what is told of a tracked tier as what is told of a bus.
type busLike[K comparable, V any] struct{ trackingListener[K, V] }

func (busLike[K, V]) Message([]byte) {}
