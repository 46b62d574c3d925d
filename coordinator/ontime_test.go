package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
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

const (
	deafTimeout = 100 * time.Millisecond
	grace       = 2 * time.Millisecond // for a call that is about to return
)

// deafCache is a cache over a store that does not heed contexts while it is held, with a
// tier in memory above it, or without.
func deafCache(t *testing.T, bytes *storetest.FaultyBytes, breaker tier.Breaker, memory bool) *coordinator.Cache[string, string] {
	t.Helper()
	o := coordinator.Options[string, string]{
		Lifetime: policy.Lifetime{TTL: time.Hour},
		Load:     func(_ context.Context, key string) (string, error) { return "loaded " + key, nil },
	}
	if memory {
		o.Tiers = append(o.Tiers, tier.Tier[string, string]{Name: "memory", Store: lru.New[string, string](1000)})
	}
	o.Tiers = append(o.Tiers, tier.Tier[string, string]{
		Name: "deaf", Store: tier.Encode[string, string](bytes, codec.String()), Timeout: deafTimeout, Breaker: breaker,
	})
	return newCache(t, o)
}

// A store of somebody's that ignores its context does not keep readers and writers longer
// than its tier's time limit, and few goroutines wait for it.
func TestADeafStoreKeepsNobody(t *testing.T) {
	for _, off := range []bool{true, false} {
		t.Run(fmt.Sprint("without a breaker ", off), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := storetest.NewFaultyBytes(storetest.NewMapBytes())
				store.SetRemote()
				c := deafCache(t, store, tier.Breaker{Off: off}, false)
				awake := make(chan struct{})
				store.Inject(storetest.Hold(awake))
				before := runtime.NumGoroutine()
				many(300, func(i int) {
					key, began := fmt.Sprint("key ", i), time.Now()
					if v, err := c.Get(ctx, key); v != "loaded "+key || err != nil {
						t.Errorf("Get: got %q, %v, want what is loaded", v, err)
					}
					// It is read, and what was loaded is to be stored.
					if took := time.Since(began); took > 2*(deafTimeout+grace) {
						t.Errorf("Get took %v, want at most %v", took, 2*(deafTimeout+grace))
					}
					began = time.Now()
					if err := c.Set(ctx, key, "set"); err == nil {
						t.Error("Set: got no error, want that of a tier")
					}
					if took := time.Since(began); took > 2*(deafTimeout+grace) {
						t.Errorf("Set took %v, want at most %v", took, 2*(deafTimeout+grace))
					}
				})
				// One that waits for the store, and one that waits for that.
				if left := runtime.NumGoroutine() - before; left > 2*64+8 {
					t.Errorf("%d goroutines are left, want those of 64 calls", left)
				}
				close(awake)
				store.Heal()
				awaitReal(t, 10*time.Second, "all that was written has arrived", func() bool { return c.Stats().Tiers[0].Pending == 0 })
				for i := range 300 {
					if v, err := c.Get(ctx, fmt.Sprint("key ", i)); v != "set" || err != nil {
						t.Fatalf("Get: got %q, %v, want what was set", v, err)
					}
				}
			})
		})
	}
}

// Callers who give up a read leave one call of a deaf store behind, and not a second that
// goes on in their place: others find room.
func TestWhoGivesUpOccupiesADeafStoreOnce(t *testing.T) {
	const most, patience = 64, 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewFaultyBytes(storetest.NewMapBytes())
		store.SetRemote()
		c := deafCache(t, store, tier.Breaker{Off: true}, true)
		awake := make(chan struct{})
		var reads atomic.Int64
		store.Inject(func(ctx context.Context, call storetest.Call, do func() error) error {
			if reads.Add(1) < most {
				<-awake
			}
			return do()
		}, storetest.Get)
		many(most-1, func(i int) {
			patient, leave := context.WithCancel(ctx)
			defer leave()
			time.AfterFunc(patience, leave)
			if _, err := c.Get(patient, fmt.Sprint("key ", i)); !errors.Is(err, context.Canceled) {
				t.Errorf("Get: %v", err)
			}
		})
		synctest.Wait()
		if got := reads.Load(); got != most-1 {
			t.Errorf("%d reads of the store for %d Gets", got, most-1)
		}
		began := time.Now()
		if v, err := c.Get(ctx, "another"); v != "loaded another" || err != nil || time.Since(began) != 0 {
			t.Errorf("a reader beside them: %q, %v after %v, want it at once", v, err, time.Since(began))
		}
		close(awake)
	})
}

// A write that was left behind, and takes effect when a newer one has been made, does not
// undo that. The store cannot write on condition.
func TestAWriteThatWasLeftBehindUndoesNothing(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			inner := storetest.NewMap[string, string]()
			store := storetest.NewFaulty(inner)
			store.SetRemote()
			c := newCache(t, coordinator.Options[string, string]{
				Tiers: []tier.Tier[string, string]{{Name: "deaf", Store: store, Timeout: deafTimeout, Breaker: tier.Breaker{Off: true}}},
				Load:  func(context.Context, string) (string, error) { return "loaded", nil },
			})
			awake := make(chan struct{})
			store.Inject(storetest.Times(1, storetest.Hold(awake)), storetest.Set)
			if err := c.Set(ctx, "key", "old"); err == nil {
				t.Fatal("Set: got no error, want that of a tier that does not answer")
			}
			want := "new" // the error of what follows says that it comes later
			if deleted {
				_ = c.Delete(ctx, "key")
				want = "loaded"
			} else {
				_ = c.Set(ctx, "key", "new")
			}
			if v, err := c.Get(ctx, "key"); v != want || err != nil {
				t.Errorf("Get meanwhile: got %q, %v, want %q", v, err, want)
			}
			time.Sleep(time.Second) // tries that are made meanwhile must not be overwritten either
			close(awake)
			synctest.Wait()
			awaitReal(t, time.Minute, "what was written last has arrived", func() bool { return c.Stats().Tiers[0].Pending == 0 })
			if e, err := inner.Get(ctx, "key"); err != nil || e != nil && e.Value() == "old" {
				t.Errorf("the store has %v, %v, want nothing of what was left behind", e, err)
			}
			if v, err := c.Get(ctx, "key"); v != want || err != nil {
				t.Errorf("Get at last: got %q, %v, want %q", v, err, want)
			}
		})
	}
}

// Close leaves such a store behind too, and says so.
func TestCloseOverADeafStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewFaultyBytes(storetest.NewMapBytes())
		store.SetRemote()
		c := deafCache(t, store, tier.Breaker{Off: true}, true)
		awake := make(chan struct{})
		defer close(awake)
		store.Inject(storetest.Hold(awake))
		var got error
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, got = c.Get(ctx, "key")
		}()
		synctest.Wait()
		within, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		began := time.Now()
		if err := c.Close(within); err != nil {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(began); took > 2*(deafTimeout+grace) {
			t.Errorf("Close took %v, want what the tier may take", took)
		}
		<-done
		if got != nil {
			t.Errorf("Get: %v", got)
		}
	})
}

// A store that panics in a goroutine of ours is met by who called it, as ever.
func TestADeafStorePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewFaultyBytes(storetest.NewMapBytes())
		store.SetRemote()
		c := deafCache(t, store, tier.Breaker{Off: true}, false)
		store.Inject(func(context.Context, storetest.Call, func() error) error { panic("broken") }, storetest.Get)
		var panicked *coordinator.PanicError
		if _, err := c.Get(ctx, "key"); !errors.As(err, &panicked) || panicked.Value != "broken" {
			t.Errorf("got %v, want the panic", err)
		}
	})
}
