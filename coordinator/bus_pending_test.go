package coordinator_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier/storetest"
)

// What a process could not tell the shared tier it takes for that tier's answer, but not
// once the bus has told it that another process has written the key (P2, W4).
func TestBusOvertakesAWriteThatWaits(t *testing.T) {
	for name, write := range map[string]func(t *testing.T, p *process){
		"a load": func(t *testing.T, p *process) { p.wantFrom(t, "k", "loaded", "") },
		"a Set":  func(t *testing.T, p *process) { _ = p.Set(ctx, "k", "b's") },
	} {
		virtual(t, name, func(t *testing.T) {
			f := newFleet()
			a, b := f.join(t), f.join(t)
			settle()
			b.l3.Inject(storetest.Fail(errDown))
			write(t, b)
			time.Sleep(10 * time.Millisecond)
			a.mustSet(t, "k", "a's")
			synctest.Wait()
			b.wantFrom(t, "k", "loaded", "") // which is what the origin has now
			b.l3.Heal()
			time.Sleep(time.Second)
			synctest.Wait()
			a.wantFrom(t, "k", "loaded", "l3") // since that is newer
			a.mustSet(t, "k", "a's again")
			synctest.Wait()
			b.wantFrom(t, "k", "a's again", "l3")
			if s := b.Stats().Tiers[2]; s.Pending > 0 {
				t.Errorf("%d writes are still to be made", s.Pending)
			}
		})
	}
}

// After a gap nothing is served that was to be told to the shared tier before it; but it is
// still told.
func TestBusAGapDoubtsWritesThatWait(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		a, b := f.join(t), f.join(t)
		settle()
		b.l3.Inject(storetest.Fail(errDown))
		b.wantFrom(t, "k", "loaded", "")
		_ = b.Set(ctx, "own", "b's")
		b.wantFrom(t, "own", "b's", "l1")
		b.bus.Cut()
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		a.mustSet(t, "k", "a's")
		b.wantFrom(t, "k", "loaded", "")
		b.wantFrom(t, "k", "loaded", "l1") // as of after the gap
		b.l3.Heal()
		b.bus.Restore()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		a.wantFrom(t, "own", "b's", "l3")
		a.wantFrom(t, "k", "loaded", "l3") // since that is newer
	})
}

// An Expire ends what a process could not tell the shared tier, and what others have written
// there since.
func TestExpireEndsAWriteThatWaits(t *testing.T) {
	for name, back := range map[string]bool{"the tier is back": true, "the tier is down": false} {
		virtual(t, name, func(t *testing.T) {
			f := newFleet()
			f.edit = func(o *coordinator.Options[string, string]) {
				o.Bus = nil
				o.Backoff = policy.Backoff{Initial: time.Second, Max: time.Second}
				o.Lifetime = policy.Lifetime{TTL: time.Minute, StaleWhileRevalidate: time.Minute}
				o.Refresh = policy.StaleWhileRevalidate{}
			}
			a, b := f.join(t), f.join(t)
			a.l3.Inject(storetest.Fail(errDown))
			if err := a.Set(ctx, "k", "a's"); err == nil {
				t.Fatal("the Set has told the tier")
			}
			time.Sleep(10 * time.Millisecond)
			b.mustSet(t, "k", "b's")
			time.Sleep(10 * time.Millisecond)
			if back {
				a.l3.Heal()
			}
			if err := a.Expire(ctx, "k"); (err == nil) != back {
				t.Errorf("Expire: %v", err)
			}
			if back {
				c := f.join(t)
				c.wantFrom(t, "k", "loaded", "")
			}
			time.Sleep(10 * time.Millisecond)
			if got, err := a.Get(ctx, "k"); err != nil || got == "b's" {
				t.Errorf("got %q, %v, which is what was expired", got, err)
			}
			a.l3.Heal()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			a.wantFrom(t, "k", "loaded", "l1")
			f.join(t).wantFrom(t, "k", "loaded", "l3")
			if n := a.Stats().Tiers[2].Pending; n > 0 {
				t.Errorf("%d writes are still to be made", n)
			}
		})
	}
}

// What waits to be told to the shared tier may be overtaken there by a load of the same
// process. The others, who have read what was there until then, hear of that too.
func TestBusALoadOvertakesAWriteThatWaits(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		f.edit = func(o *coordinator.Options[string, string]) {
			o.Backoff = policy.Backoff{Initial: time.Hour, Max: time.Hour}
		}
		a, b := f.join(t), f.join(t)
		settle()
		b.mustSet(t, "k", "old")
		synctest.Wait()
		a.l3.Inject(storetest.Fail(errDown))
		_ = a.Delete(ctx, "k")
		synctest.Wait()
		b.wantFrom(t, "k", "old", "l3")
		a.l3.Heal()
		a.wantFrom(t, "k", "loaded", "")
		synctest.Wait()
		b.wantFrom(t, "k", "loaded", "l3")
	})
}

// A flight that waits for another process's lease has a stale value for the case that its
// load fails, but not one that others have deleted meanwhile.
func TestBusADeleteEndsTheReserveOfWhoWaitsForALease(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		var load coordinator.Loader[string, string]
		f.edit = func(o *coordinator.Options[string, string]) {
			o.Lease = coordinator.Lease{Life: 10 * time.Second}
			o.Lifetime = policy.Lifetime{TTL: time.Second, StaleIfError: time.Hour}
			o.Load = load
		}
		load = func(context.Context, string) (string, error) { return "old", nil }
		c := f.join(t)
		load = func(ctx context.Context, _ string) (string, error) { return "new", sleep(ctx, 2*time.Second) }
		a := f.join(t)
		load = func(context.Context, string) (string, error) { return "", errDown }
		b := f.join(t)
		settle()
		for _, p := range []*process{c, b} {
			wantGet(t, p.Cache, "k", "old")
		}
		time.Sleep(1500 * time.Millisecond)
		var all sync.WaitGroup
		all.Go(func() { wantGet(t, a.Cache, "k", "new") })
		time.Sleep(10 * time.Millisecond)
		all.Go(func() { _, _ = b.Get(ctx, "k") })
		time.Sleep(10 * time.Millisecond)
		if err := c.Delete(ctx, "k"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if v, err := b.Get(ctx, "k"); err == nil {
			t.Errorf("after the Delete: got %q, want the load's error", v)
		}
		all.Wait()
	})
}
