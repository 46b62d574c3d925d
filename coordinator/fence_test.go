package coordinator_test

import (
	"context"
	"fmt"
	"slices"
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

// invalidations are the ways to end what was there before. Each leaves want for the
// Get that follows it, given that the origin has v2.
var invalidations = []struct {
	name string
	do   func(c *coordinator.Cache[string, string]) error
	want string
}{
	{"Delete", func(c *coordinator.Cache[string, string]) error { return c.Delete(ctx, "k") }, "v2"},
	{"Set", func(c *coordinator.Cache[string, string]) error { return c.Set(ctx, "k", "set") }, "set"},
	{"Clear", func(c *coordinator.Cache[string, string]) error { return c.Clear(ctx) }, "v2"},
	{"Expire", func(c *coordinator.Cache[string, string]) error { return c.Expire(ctx, "k") }, "v2"},
}

// C09: a Delete while a load is under way; the deleted value must not come back.
func TestC09InvalidatedDuringLoad(t *testing.T) {
	for _, inv := range invalidations {
		for tiers := 1; tiers <= 5; tiers++ {
			virtual(t, fmt.Sprintf("%s, %d tiers", inv.name, tiers), func(t *testing.T) {
				var o origin
				var source atomic.Value
				source.Store("v1")
				release := make(chan struct{})
				c := newCache(t, coordinator.Options[string, string]{
					Tiers: chain(tiers),
					Load: func(context.Context, string) (string, error) {
						defer o.enter()()
						v := source.Load().(string)
						if v == "v1" {
							<-release
						}
						return v, nil
					},
				})
				waiter := make(chan string, 1)
				go func() { v, _ := c.Get(ctx, "k"); waiter <- v }()
				synctest.Wait()

				source.Store("v2")
				if err := inv.do(c); err != nil {
					t.Fatalf("%s: %v", inv.name, err)
				}
				// A Get that begins now does not join the flight that began before.
				wantGet(t, c, "k", inv.want)
				close(release)
				if got := <-waiter; got != "v1" {
					t.Errorf("the one who waited: got %q, want v1", got)
				}
				synctest.Wait()
				wantGet(t, c, "k", inv.want)
				if s := c.Stats(); s.Fenced == 0 || s.Keys != 0 {
					t.Errorf("stats: fenced %d, keys %d", s.Fenced, s.Keys)
				}
			})
		}
	}
}

// C09 on a second node, and across nodes: the invalidation is made by one process
// while another loads.
func TestC09AcrossProcesses(t *testing.T) {
	for _, there := range []string{"", "an old value"} {
		for _, inv := range invalidations[:2] {
			virtual(t, fmt.Sprintf("%s with %q there", inv.name, there), func(t *testing.T) {
				server := storetest.NewMapBytes()
				release := make(chan struct{})
				var source atomic.Value
				source.Store("v1")
				node := func(hang bool) *coordinator.Cache[string, string] {
					return newCache(t, coordinator.Options[string, string]{
						Tiers:    []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l2", server.Another())},
						Lifetime: policy.Lifetime{TTL: time.Second, StaleIfError: time.Hour},
						Load: func(context.Context, string) (string, error) {
							v := source.Load().(string)
							if hang && v == "v1" {
								<-release
							}
							return v, nil
						},
					})
				}
				a, b := node(true), node(false)
				if there != "" {
					if err := b.Set(ctx, "k", there); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				waiter := make(chan string, 1)
				go func() { v, _ := a.Get(ctx, "k"); waiter <- v }()
				synctest.Wait()
				source.Store("v2")
				if err := inv.do(b); err != nil {
					t.Fatal(err)
				}
				close(release)
				if got := <-waiter; got != "v1" {
					t.Errorf("the one who waited: got %q, want v1", got)
				}
				synctest.Wait()
				wantGet(t, a, "k", inv.want)
				wantGet(t, b, "k", inv.want)
			})
		}
	}
}

// A fill, too, that began before an invalidation must not bring back what it found.
func TestInvalidatedDuringFill(t *testing.T) {
	for _, inv := range invalidations {
		virtual(t, inv.name, func(t *testing.T) {
			hold, holding := make(chan struct{}), make(chan struct{})
			l3 := storetest.NewMap[string, string]()
			var armed atomic.Bool
			slow := hook(l3, nil)
			read := &afterGet{hooked: slow, pause: func() {
				if armed.CompareAndSwap(true, false) {
					close(holding)
					<-hold
				}
			}}
			c := newCache(t, coordinator.Options[string, string]{
				Tiers: []tier.Tier[string, string]{memory[string]("l1"), memory[string]("l2"), {Name: "l3", Store: read}},
				Load:  func(context.Context, string) (string, error) { return "v2", nil },
			})
			now := tier.Now()
			old := tier.NewEntry("v1", tier.Meta{LoadedAt: now, FreshUntil: now.Add(time.Hour), UsableUntil: now.Add(time.Hour)})
			if err := l3.Set(ctx, "k", old, time.Hour); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			armed.Store(true)
			waiter := make(chan string, 1)
			go func() { v, _ := c.Get(ctx, "k"); waiter <- v }()
			<-holding                                                // it has read v1 and not filled yet
			if err := inv.do(c); err != nil && inv.name != "Clear" { // l3 cannot clear
				t.Fatal(err)
			}
			close(hold)
			// A Clear may end before the entry's own tier has answered; the reader then
			// sees that it is not to be trusted any more.
			if got := <-waiter; got != "v1" && inv.name != "Clear" {
				t.Errorf("the one who waited: got %q, want v1", got)
			}
			wantGet(t, c, "k", inv.want)
		})
	}
}

// afterGet pauses between the store's answer and its return.
type afterGet struct {
	*hooked[string]
	pause func()
}

func (a *afterGet) Get(ctx context.Context, key string) (*tier.Entry[string], error) {
	e, err := a.hooked.Get(ctx, key)
	a.pause()
	return e, err
}

// A write waits for the store step of a load that it fences, so that what the load
// had begun to store does not land after it.
func TestWriteOvertakesStoreStep(t *testing.T) {
	for _, inv := range invalidations {
		virtual(t, inv.name, func(t *testing.T) {
			var first atomic.Bool
			first.Store(true)
			slow := hook(storetest.NewMap[string, string](), func(ctx context.Context, op, _ string) error {
				if op == "set" && first.CompareAndSwap(true, false) {
					return sleep(ctx, 100*time.Millisecond)
				}
				return nil
			})
			var n atomic.Int64
			c := newCache(t, coordinator.Options[string, string]{
				Tiers: []tier.Tier[string, string]{memory[string]("l1"), {Name: "l2", Store: &clearable{slow}}},
				Load:  func(context.Context, string) (string, error) { return fmt.Sprintf("v%d", n.Add(1)), nil },
			})
			go func() { _, _ = c.Get(ctx, "k") }()
			synctest.Wait() // it is storing v1 in l2
			if err := inv.do(c); err != nil {
				t.Fatal(err)
			}
			wantGet(t, c, "k", inv.want)
			if err := c.Delete(ctx, "other"); err != nil { // drops nothing of k
				t.Fatal(err)
			}
			e, err := slow.store.Get(ctx, "k")
			if err != nil || e == nil || e.Value() != inv.want {
				t.Errorf("l2 has %v, %v, want %q", e, err, inv.want)
			}
		})
	}
}

type clearable struct{ *hooked[string] }

func (c *clearable) Clear(ctx context.Context) error { return c.store.(tier.Clearer).Clear(ctx) }

// W3: deletes go from the bottom up; so do sets, so that a reader finds the new
// value below before it can miss it above.
func TestWritesGoBottomUp(t *testing.T) {
	var order []string
	named := func(name string) tier.Tier[string, string] {
		return tier.Tier[string, string]{Name: name, Store: hook(storetest.NewMap[string, string](), func(_ context.Context, op, _ string) error {
			order = append(order, name+" "+op)
			return nil
		})}
	}
	c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{named("l1"), named("l2"), named("l3")}})
	_ = c.Set(ctx, "k", "v")
	_ = c.Delete(ctx, "k")
	want := []string{"l3 set", "l2 set", "l1 set", "l3 delete", "l2 delete", "l1 delete"}
	if !slices.Equal(order, want) {
		t.Errorf("got %q, want %q", order, want)
	}
}

// A load that another process's write has overtaken is not stored in any tier.
func TestRefusedStoreIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := storetest.NewMapBytes()
		l2, l3 := storetest.NewMapBytes(), server.Another()
		release := make(chan struct{})
		c := newCache(t, coordinator.Options[string, string]{
			// The tier that refuses is above one that has stored already.
			Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l2", l3), shared[string]("l3", l2)},
			Load:  func(context.Context, string) (string, error) { <-release; return "v1", nil },
		})
		go func() { _, _ = c.Get(ctx, "k") }()
		synctest.Wait()
		other := tier.Encode[string, string](server.Another(), codec.JSON[string]())
		if err := other.Bury(ctx, "k", time.Minute); err != nil {
			t.Fatal(err)
		}
		close(release)
		synctest.Wait()
		if r, err := c.Peek(ctx, "k"); err == nil {
			t.Errorf("tier %s has %q, want a miss in all", r.Tier, r.Value)
		}
		if got := c.Stats().Fenced; got != 1 {
			t.Errorf("fenced: got %d, want 1", got)
		}
	})
}

// L1 beside W1: two processes without a lease that load at once agree in the end.
func TestTwoLoadersAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := storetest.NewMapBytes()
		var n atomic.Int64
		node := func() *coordinator.Cache[string, string] {
			return newCache(t, coordinator.Options[string, string]{
				Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l2", server.Another())},
				Load: func(ctx context.Context, _ string) (string, error) {
					v := fmt.Sprintf("v%d", n.Add(1))
					return v, sleep(ctx, time.Duration(n.Load())*time.Second)
				},
			})
		}
		a, b := node(), node()
		many(2, func(i int) { _, _ = []*coordinator.Cache[string, string]{a, b}[i].Get(ctx, "k") })
		va, _ := a.Get(ctx, "k")
		vb, _ := b.Get(ctx, "k")
		if va != vb {
			t.Errorf("a has %q, b has %q", va, vb)
		}
	})
}

// A fenced flight, which stores nothing, does not wait behind the writes that fenced it.
func TestFencedFlightDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fb := storetest.NewFaultyBytes(storetest.NewMapBytes())
		fb.SetRemote()
		fb.Inject(storetest.BlackHole(), storetest.Set, storetest.SetIf)
		var o origin
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", fb)}, Load: o.after(50*time.Millisecond, "v")})
		var took time.Duration
		var wg sync.WaitGroup
		wg.Add(1)
		go func() { defer wg.Done(); b := time.Now(); c.Get(ctx, "k"); took = time.Since(b) }()
		time.Sleep(10 * time.Millisecond)
		many(20, func(int) { c.Set(ctx, "k", "s") })
		wg.Wait()
		t.Logf("Get took %v", took)
		if took > time.Second {
			t.Errorf("a fenced flight, which stores nothing, kept its caller %v (load 50ms)", took)
		}
	})
}
