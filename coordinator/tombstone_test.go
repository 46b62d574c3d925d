package coordinator_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// So is a load that outlasts the tombstone of a Delete from before it.
func TestLoadOutlivesTheTombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", storetest.NewMapBytes())},
			Load:  o.after(time.Second, "v"),
		})
		_ = c.Delete(ctx, "k")
		time.Sleep(10500 * time.Millisecond)
		wantGet(t, c, "k", "v")
		if _, err := c.Peek(ctx, "k"); err != nil {
			t.Errorf("loaded value stored nowhere: %v", err)
		}
	})
}

func two(t *testing.T, la, lb coordinator.Loader[string, string], life policy.Lifetime) (a, b *coordinator.Cache[string, string], m *storetest.MapBytes) {
	m = storetest.NewMapBytes()
	a = newCache(t, coordinator.Options[string, string]{Lifetime: life, Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}, Load: la})
	b = newCache(t, coordinator.Options[string, string]{Lifetime: life, Tiers: []tier.Tier[string, string]{shared[string]("l3", m.Another())}, Load: lb})
	return
}

// An absence that is not cached does not shorten the tombstone that keeps another process from storing what it began to load before the Delete.
func TestAbsenceKeepsTheTombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		a, b, _ := two(t, func(context.Context, string) (string, error) { return "", tier.ErrAbsent }, o.after(5*time.Second, "old"), policy.Lifetime{})
		go b.Get(ctx, "k") // reads the old row now
		time.Sleep(time.Second)
		if err := a.Delete(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		_, err := a.Get(ctx, "k")
		wantError(t, "get", err, tier.ErrAbsent)
		time.Sleep(5 * time.Second)
		v, err := a.Get(ctx, "k")
		if err == nil {
			t.Errorf("the deleted value is back: %q", v)
		}
	})
}

// A Set whose life is over before another process has loaded still keeps that from storing.
func TestShortSetFencesLongLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		a, b, _ := two(t, func(context.Context, string) (string, error) { return "new", nil }, o.after(5*time.Second, "old"), policy.Lifetime{})
		go b.Get(ctx, "k")
		time.Sleep(time.Second)
		if err := a.SetWith(ctx, "k", coordinator.Loaded[string]{Value: "new", TTL: time.Second}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if v, _ := a.Get(ctx, "k"); v != "new" {
			t.Errorf("got %q older than the Set", v)
		}
	})
}

// A Set that is too large for a shared tier fences the loads of other processes there.
func TestTooLargeSetFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewMapBytes()
		fb := storetest.NewFaultyBytes(m.Another())
		fb.SetRemote()
		fb.Inject(func(ctx context.Context, call storetest.Call, do func() error) error {
			_ = m.Delete(ctx, call.Keys[0].(string))
			return tier.ErrTooLarge
		}, storetest.SetIf)
		a := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{{Name: "l1", Store: storetest.NewMap[string, string](), TTL: time.Second}, shared[string]("l3", fb)},
			Load: func(context.Context, string) (string, error) { return "new", nil }})
		var o origin
		b := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", m.Another())}, Load: o.after(3*time.Second, "old")})
		go b.Get(ctx, "k")
		time.Sleep(time.Second)
		wantError(t, "Set", a.Set(ctx, "k", "new"), tier.ErrTooLarge)
		time.Sleep(3 * time.Second)
		if v, _ := a.Get(ctx, "k"); v != "new" {
			t.Errorf("Set new, got %q", v)
		}
	})
}

// What is withdrawn leaves a tombstone, as another process may have left one there.
func TestWithdrawKeepsTombstones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m2, m3 := storetest.NewMapBytes(), storetest.NewMapBytes()
		hold := make(chan struct{})
		mk := func(l2 tier.Bytes, load coordinator.Loader[string, string]) *coordinator.Cache[string, string] {
			return newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l2", l2), shared[string]("l3", m3.Another())}, Load: load})
		}
		f2 := storetest.NewFaultyBytes(m2.Another())
		f2.SetRemote()
		f2.Inject(func(ctx context.Context, _ storetest.Call, do func() error) error { <-hold; return do() }, storetest.SetIf)
		a := mk(f2, func(context.Context, string) (string, error) { return "a-old", nil })
		b := mk(m2.Another(), func(context.Context, string) (string, error) { return "new", nil })
		d2 := storetest.NewFaultyBytes(m2.Another())
		d2.SetRemote()
		d2.Inject(storetest.Slow(300*time.Millisecond), storetest.SetIf)
		d := mk(d2, func(ctx context.Context, _ string) (string, error) { return "d-old", sleep(ctx, 3*time.Second) })
		go d.Get(ctx, "k")
		time.Sleep(10 * time.Millisecond)
		go a.Get(ctx, "k")
		time.Sleep(100 * time.Millisecond)
		if err := b.Delete(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		close(hold)
		time.Sleep(3 * time.Second) // d stored in l3 at ~3.0s, l2 refused at 3.3
		if v, _ := b.Get(ctx, "k"); v != "new" {
			t.Errorf("after Delete: %q", v)
		}
	})
}

// A Set that timed out and reaches the server late does not overwrite a later one.
func TestLateSetDoesNotOverwrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &lateBytes{MapBytes: storetest.NewMapBytes()}
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{{Name: "l1", Store: storetest.NewMap[string, string](), TTL: time.Second}, shared[string]("l3", b)},
		})
		b.late.Store(true)
		wantError(t, "Set", c.Set(ctx, "k", "v1"), context.DeadlineExceeded)
		if err := c.Set(ctx, "k", "v2"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		wantGet(t, c, "k", "v2")
		if b.late.Load() {
			t.Error("nothing was late")
		}
	})
}

// lateBytes lets one conditional write reach the server two seconds late.
type lateBytes struct {
	*storetest.MapBytes
	late atomic.Bool
}

func (b *lateBytes) SetIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (bool, error) {
	if !b.late.CompareAndSwap(true, false) {
		return b.MapBytes.SetIf(ctx, key, value, ttl, head)
	}
	value, head = bytes.Clone(value), bytes.Clone(head)
	time.AfterFunc(2*time.Second, func() { _, _ = b.MapBytes.SetIf(context.Background(), key, value, ttl, head) })
	<-ctx.Done()
	return false, ctx.Err()
}
