package coordinator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

// cutBytes are reached through a network that, while it is cut, keeps what is sent to
// them, and brings it when it is whole again, to whomever it may concern by then.
type cutBytes struct {
	*storetest.MapBytes

	mu   sync.Mutex
	cut  bool
	past int // calls that still pass while cut
	late []func()
}

func (b *cutBytes) send(ctx context.Context, call func()) error {
	b.mu.Lock()
	if b.past--; !b.cut || b.past >= 0 {
		b.mu.Unlock()
		call()
		return nil
	}
	b.late = append(b.late, call)
	b.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

func (b *cutBytes) setCut(cut bool, past int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cut, b.past = cut, past
	if !cut {
		for _, call := range b.late {
			call()
		}
		b.late = nil
	}
}

func (b *cutBytes) Get(ctx context.Context, key string) (value []byte, err error) {
	var got []byte
	var gotErr error
	if err := b.send(ctx, func() { got, gotErr = b.MapBytes.Get(context.Background(), key) }); err != nil {
		return nil, err
	}
	return got, gotErr
}

func (b *cutBytes) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return b.send(ctx, func() { _ = b.MapBytes.Set(context.Background(), key, value, ttl) })
}

func (b *cutBytes) Delete(ctx context.Context, key string) error {
	return b.send(ctx, func() { _ = b.MapBytes.Delete(context.Background(), key) })
}

func (b *cutBytes) SetIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (bool, error) {
	stored := false
	if err := b.send(ctx, func() { stored, _ = b.MapBytes.SetIf(context.Background(), key, value, ttl, head) }); err != nil {
		return false, err
	}
	return stored, nil
}

// A write that timed out, and reaches the tier after all when others have written since,
// changes nothing there: it would take away the fence that their writes are to a load, or
// Set, from between the two (W1, W4).
func TestAWriteThatComesLate(t *testing.T) {
	for name, write := range map[string]func(c *coordinator.Cache[string, string]){
		"Delete": func(c *coordinator.Cache[string, string]) { _ = c.Delete(ctx, "k") },
		"Set":    func(c *coordinator.Cache[string, string]) { _ = c.Set(ctx, "k", "late") },
		"Expire": func(c *coordinator.Cache[string, string]) { _ = c.Expire(ctx, "k") },
	} {
		for past := range 2 {
			virtual(t, fmt.Sprint(name, " cut after ", past), func(t *testing.T) { comesLate(t, past, write) })
		}
	}
}

func comesLate(t *testing.T, past int, write func(*coordinator.Cache[string, string])) {
	bytes := storetest.NewMapBytes()
	join := func(b tier.Bytes, load string) *coordinator.Cache[string, string] {
		var o origin
		return newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{
				{Name: "l1", Store: lru.New[string, string](100), TTL: time.Second},
				{Name: "l2", Store: tier.Encode[string, string](b, codec.JSON[string]()), Timeout: 100 * time.Millisecond, Breaker: tier.Breaker{Off: true}},
			},
			Lifetime: policy.Lifetime{TTL: time.Hour},
			Backoff:  policy.Backoff{Initial: 10 * time.Second, Max: 10 * time.Second},
			Load:     o.after(0, load),
		})
	}
	network := &cutBytes{MapBytes: bytes.Another()}
	a, b := join(bytes, "new"), join(network, "old")
	if err := a.Set(ctx, "k", "first"); err != nil {
		t.Fatal(err)
	}
	network.setCut(true, past)
	write(b)
	time.Sleep(2 * time.Second)
	_, _ = b.Get(ctx, "k") // loads, and cannot tell the tier
	time.Sleep(time.Second)
	if err := a.Delete(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	network.setCut(false, 0)
	time.Sleep(time.Minute)
	synctest.Wait()
	if got, err := a.Get(ctx, "k"); got != "new" || err != nil {
		t.Errorf("got %q, %v after a Delete, want what has been loaded since", got, err)
	}
}
