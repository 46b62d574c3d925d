package coordinator_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

// Who leads a flight searches for it, and may leave in the middle. He is answered at once,
// that is no failure of the tier, and the flight goes on for the others and for the tiers
// above.
func TestALeaderLeavesAndTheFlightGoesOn(t *testing.T) {
	const slow, patience = 100 * time.Millisecond, 10 * time.Millisecond
	for name, leave := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"at a deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, patience)
		},
		"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(patience, cancel)
			return ctx, cancel
		},
	} {
		for _, punctual := range []bool{true, false} {
			virtual(t, name, func(t *testing.T) {
				server := storetest.NewMapBytes()
				l3 := storetest.NewFaultyBytes(server)
				var store tier.Store[string, string] = tier.Encode[string](l3, codec.JSON[string]())
				if punctual {
					store = punctualStore{store}
				}
				var o origin
				c := newCache(t, coordinator.Options[string, string]{
					Tiers:    []tier.Tier[string, string]{memory[string]("l1"), {Name: "l3", Store: store, Timeout: time.Second}},
					Lifetime: policy.Lifetime{TTL: time.Minute},
					Load:     o.after(0, "loaded"),
				})
				other := newCache(t, coordinator.Options[string, string]{
					Tiers:    []tier.Tier[string, string]{shared[string]("l3", server.Another())},
					Lifetime: policy.Lifetime{TTL: time.Minute},
				})
				for _, key := range []string{"joined", "alone"} {
					if err := other.Set(ctx, key, "stored"); err != nil {
						t.Fatal(err)
					}
				}
				l3.Inject(func(ctx context.Context, _ storetest.Call, do func() error) error {
					if err := sleep(ctx, slow); err != nil {
						return err
					}
					return do()
				})
				for _, key := range []string{"joined", "alone"} {
					start := time.Now()
					var joiner sync.WaitGroup
					leader, cancel := leave(ctx)
					if key == "joined" {
						joiner.Go(func() {
							time.Sleep(patience / 2)
							wantGet(t, c, key, "stored")
						})
					}
					_, err := c.Get(leader, key)
					wantError(t, "the leader's Get", err, leader.Err())
					if took := time.Since(start); took != patience {
						t.Errorf("the leader left after %v, want %v", took, patience)
					}
					cancel()
					joiner.Wait()
					time.Sleep(2 * slow)
					synctest.Wait()
					before := time.Now()
					wantGet(t, c, key, "stored")
					if took := time.Since(before); took != 0 {
						t.Errorf("%s: the flight has not filled the tier above: a Get takes %v", key, took)
					}
				}
				wantCalls(t, &o, 0)
				if s := c.Stats().Tiers[1]; s.Errors != 0 || s.Breaker != "closed" {
					t.Errorf("%d errors, breaker %s, want none, closed", s.Errors, s.Breaker)
				}
			})
		}
	}
}

// punctualStore is a store that heeds contexts, and says so.
type punctualStore struct{ tier.Store[string, string] }

func (punctualStore) Punctual() bool { return true }

// What the leader's read finds may be overtaken by a write while he is about to leave.
// Nobody who asks after that write is handed it.
func TestALeaderLeavesWithWhatIsOvertaken(t *testing.T) {
	const slow = 100 * time.Millisecond
	for name, told := range map[string]func(*coordinator.Options[string, string]){
		"a bus":    func(*coordinator.Options[string, string]) {},
		"tracking": func(o *coordinator.Options[string, string]) { o.Bus, o.Track = nil, true },
	} {
		for _, lease := range []time.Duration{0, 10 * time.Second} {
			for _, own := range []bool{false, true} {
				for _, deleted := range []bool{false, true} {
					virtual(t, fmt.Sprintf("%s, lease %v, own write %v, Delete %v", name, lease, own, deleted), func(t *testing.T) {
						f := newFleet()
						f.edit = func(o *coordinator.Options[string, string]) {
							o.Lease.Life = lease
							told(o)
							l3 := &o.Tiers[len(o.Tiers)-1]
							l3.Store = promptStore{l3.Store.(*tier.Encoded[string, string])}
						}
						a, b := f.join(t), f.join(t)
						settle()
						a.mustSet(t, "k", "old")
						synctest.Wait()
						// The answer is on its way when the leader leaves, and is taken.
						b.l3.Inject(storetest.Times(1, answersLate(slow)), storetest.Get)
						leader, leave := context.WithCancel(ctx)
						defer leave()
						var all sync.WaitGroup
						all.Go(func() { _, _ = b.Get(leader, "k") })
						time.Sleep(slow / 4)
						by, want := a, "new"
						if own {
							by = b
						}
						if deleted {
							want = "loaded"
							if err := by.Delete(ctx, "k"); err != nil {
								t.Error(err)
							}
						} else {
							by.mustSet(t, "k", want)
						}
						synctest.Wait()
						all.Go(func() { wantGet(t, b.Cache, "k", want) })
						synctest.Wait()
						leave()
						all.Wait()
						wantGet(t, b.Cache, "k", want)
					})
				}
			}
		}
	}
}

// promptStore is a store with all capabilities that heeds contexts, and says so.
type promptStore struct {
	*tier.Encoded[string, string]
}

func (promptStore) Punctual() bool { return true }

// Flights that have ended are used again. Whoever has joined one reads its answer, and not
// that of the next.
func TestFlightsThatAreUsedAgainKeepTheirAnswers(t *testing.T) {
	l3 := storetest.NewFaultyBytes(storetest.NewMapBytes())
	l3.Inject(func(_ context.Context, _ storetest.Call, do func() error) error {
		runtime.Gosched() // others join
		return do()
	})
	c := newCache(t, coordinator.Options[string, string]{
		Tiers:    []tier.Tier[string, string]{shared[string]("l3", l3)},
		Lifetime: policy.Lifetime{TTL: time.Minute},
	})
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		if err := c.Set(ctx, key, key); err != nil {
			t.Fatal(err)
		}
	}
	many(16, func(i int) {
		within, cancel := context.WithCancel(ctx)
		defer cancel()
		for n := range 2_000 {
			key := keys[(i+n)%len(keys)]
			if n%50 == 7 { // one who is about to leave
				short, leave := context.WithCancel(within)
				go leave()
				_, _ = c.Get(short, key)
				continue
			}
			if n%100 == 11 {
				if err := c.Set(ctx, key, key); err != nil {
					t.Error(err)
				}
			}
			if got, err := c.Get(within, key); err != nil || got != key {
				t.Errorf("Get(%s): %q, %v", key, got, err)
				return
			}
		}
	})
	if c.Stats().Joins == 0 {
		t.Error("nobody has joined a flight")
	}
}

// keeper is a store in memory that keeps the contexts of its writes, as one that traces may.
type keeper struct {
	*storetest.Map[string, string]
	kept []context.Context
}

func (k *keeper) Set(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
	k.kept = append(k.kept, ctx)
	return k.Map.Set(ctx, key, e, ttl)
}

// A store that keeps the context of a fill keeps nothing of a flight that is used again.
func TestFlightsThatAreUsedAgainLeaveTheirContexts(t *testing.T) {
	type traceKey struct{}
	server := storetest.NewMapBytes()
	writer := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", server.Another())}})
	l1 := &keeper{Map: storetest.NewMap[string, string]()}
	c := newCache(t, coordinator.Options[string, string]{
		Tiers: []tier.Tier[string, string]{{Name: "l1", Store: l1}, shared[string]("l3", server)},
	})
	for i := range 50 {
		key := fmt.Sprint(i)
		if err := writer.Set(ctx, key, key); err != nil {
			t.Fatal(err)
		}
		request, end := context.WithCancel(context.WithValue(ctx, traceKey{}, key))
		wantValue(request, t, c, key)
		end()
	}
	if len(l1.kept) != 50 {
		t.Errorf("%d fills, want 50", len(l1.kept))
	}
	for i, kept := range l1.kept {
		derived, cancel := context.WithCancel(kept)
		if got, want := derived.Value(traceKey{}), fmt.Sprint(i); got != want || derived.Err() != nil {
			t.Errorf("the context of fill %d: value %v, error %v", i, got, derived.Err())
		}
		cancel()
	}
}

func wantValue(ctx context.Context, t *testing.T, c *coordinator.Cache[string, string], want string) {
	t.Helper()
	if got, err := c.Get(ctx, want); err != nil || got != want {
		t.Errorf("Get(%s): %q, %v", want, got, err)
	}
}
