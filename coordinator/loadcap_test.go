package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// Loads beyond the cap wait for a turn (L7), and are made.
func TestLoadsAreCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:  []tier.Tier[string, string]{memory[string]("l1")},
			Load:   o.after(100*time.Millisecond, "value"),
			Limits: coordinator.Limits{Loads: 5},
		})
		began := time.Now()
		many(50, func(i int) { wantGet(t, c, fmt.Sprint(i), "value") })
		if got := o.peak.Load(); got != 5 {
			t.Errorf("%d loads at once, want 5", got)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("50 loads of 100ms took %v, want a second", took)
		}
		if got := c.Stats().LoadWaits; got != 45 {
			t.Errorf("%d loads have waited, want 45", got)
		}
		// The cap is changed while it works, and taken away.
		for _, most := range []int{10, 0} {
			o.peak.Store(0)
			limits := coordinator.Limits{Loads: most}
			if err := c.Reconfigure(coordinator.Change{Limits: &limits}); err != nil {
				t.Fatal(err)
			}
			many(50, func(i int) { wantGet(t, c, fmt.Sprint(most, i), "value") })
			want := int64(most)
			if most == 0 {
				want = 50
			}
			if got := o.peak.Load(); got != want {
				t.Errorf("%d loads at once, want %d", got, want)
			}
		}
	})
}

// Who waits for a turn leaves when its context ends, and the load gives up when it has
// waited for as long as it may take.
func TestACappedLoadIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{memory[string]("l1")},
			Load: func(context.Context, string) (string, error) {
				<-release
				return "value", nil
			},
			Limits: coordinator.Limits{Loads: 1, LoadTimeout: 10 * time.Second},
		})
		go func() { _, _ = c.Get(ctx, "hangs") }()
		synctest.Wait()
		within, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err := c.Get(within, "key")
		wantError(t, "who has 50ms", err, context.DeadlineExceeded)
		_, err = c.Get(ctx, "key")
		wantError(t, "who has time", err, coordinator.ErrSaturated)
		close(release)
		synctest.Wait()
		wantGet(t, c, "key", "value")
	})
}

// Close does not wait for a load that waits for its turn longer than its context.
func TestCloseWithACappedLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{memory[string]("l1")},
			Load: func(context.Context, string) (string, error) {
				<-release
				return "", nil
			},
			Limits: coordinator.Limits{Loads: 1},
		})
		go func() { _, _ = c.Get(ctx, "hangs") }()
		synctest.Wait()
		failed := make(chan error, 1)
		go func() {
			_, err := c.Get(ctx, "waits")
			failed <- err
		}()
		synctest.Wait()
		within, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := c.Close(within); err == nil {
			t.Error("Close: got no error, want that loads were cancelled")
		}
		wantError(t, "who waited for a turn", <-failed, coordinator.ErrClosed)
	})
}

// Where there is a stale value nobody waits.
func TestACappedLoadServesStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var held atomic.Bool
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{memory[string]("l1")},
			Load: func(_ context.Context, key string) (string, error) {
				if held.Load() {
					<-release
				}
				return key, nil
			},
			Lifetime: policy.Lifetime{TTL: time.Minute, StaleIfError: time.Hour},
			Limits:   coordinator.Limits{Loads: 1},
		})
		defer close(release)
		wantGet(t, c, "key", "key")
		time.Sleep(2 * time.Minute)
		held.Store(true)
		go func() { _, _ = c.Get(ctx, "hangs") }()
		synctest.Wait()
		began := time.Now()
		if r, err := c.Lookup(ctx, "key"); err != nil || r.State != coordinator.Stale || r.Value != "key" || time.Since(began) != 0 {
			t.Errorf("got %+v, %v after %v, want the stale value at once", r, err, time.Since(began))
		}
	})
}

// A loader that asks the cache for another key does so in its own place.
func TestLoadsWithinALoadAreNotCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *coordinator.Cache[int, int]
		c = newCache(t, coordinator.Options[int, int]{
			Tiers: []tier.Tier[int, int]{{Name: "l1", Store: storetest.NewMap[int, int]()}},
			Load: func(ctx context.Context, n int) (int, error) {
				if n == 0 {
					return 0, nil
				}
				below, err := c.Get(ctx, n-1)
				return below + 1, err
			},
			Limits: coordinator.Limits{Loads: 1, LoadTimeout: time.Second},
		})
		many(20, func(int) { wantGet(t, c, 10, 10) })
	})
}

// shards are servers that share the keys of one tier, and can be started anew, empty.
type shards struct {
	of [4]atomic.Pointer[storetest.MapBytes]
}

func newShards() *shards {
	s := new(shards)
	for i := range s.of {
		s.restart(i)
	}
	return s
}

func (s *shards) restart(i int) { s.of[i].Store(storetest.NewMapBytes()) }

func (s *shards) Get(ctx context.Context, key string) ([]byte, error) {
	return s.pick(key).Get(ctx, key)
}

func (s *shards) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return s.pick(key).Set(ctx, key, value, ttl)
}

func (s *shards) Delete(ctx context.Context, key string) error { return s.pick(key).Delete(ctx, key) }

func (s *shards) SetIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (bool, error) {
	return s.pick(key).SetIf(ctx, key, value, ttl, head)
}

func (s *shards) Close() error { return nil }

func (s *shards) Punctual() bool { return true }

func (s *shards) pick(key string) *storetest.MapBytes {
	return s.of[key[len(key)-1]%4].Load()
}

// C91: the servers of the shared tier are started anew one by one, each empty, under
// load, and the origin gets the slower the more it is asked. The loads at a time are
// bounded, no reader gets an error, and all recovers while the readers go on.
func TestC91ShardsRestartOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			keys    = 1000
			slots   = 50
			readers = 100
		)
		tier3 := newShards()
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{
				{Name: "l1", Store: storetest.NewMap[string, string](), TTL: time.Second},
				{Name: "l3", Store: tier.Encode[string, string](tier3, codec.String())},
			},
			Lifetime: policy.Lifetime{TTL: time.Hour, StaleIfError: time.Hour},
			Load: func(ctx context.Context, key string) (string, error) {
				defer o.enter()()
				takes := 20 * time.Millisecond
				switch n := o.running.Load(); {
				case n > slots:
					return "", errors.New("too many connections")
				case n > slots/2:
					takes *= 5
				}
				return key, sleep(ctx, takes)
			},
			Limits: coordinator.Limits{Loads: slots},
		})
		many(keys, func(i int) { wantGet(t, c, fmt.Sprint(i), fmt.Sprint(i)) })
		o.calls.Store(0)
		stop := make(chan struct{})
		var slow atomic.Int64 // reads that took over half a second
		var all sync.WaitGroup
		for r := range uint64(readers) {
			all.Go(func() {
				random := rand.New(rand.NewPCG(r, 1))
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(random.IntN(100)) * time.Millisecond):
					}
					key, began := fmt.Sprint(random.IntN(keys)), time.Now()
					if v, err := c.Get(ctx, key); v != key || err != nil {
						t.Errorf("Get %s: %q, %v", key, v, err)
					}
					if time.Since(began) > 500*time.Millisecond {
						slow.Add(1)
					}
				}
			})
		}
		for i := range 4 {
			tier3.restart(i)
			time.Sleep(2 * time.Second)
			slow.Store(0)
			time.Sleep(2 * time.Second)
			if got := slow.Load(); got > 0 {
				t.Errorf("restart %d: %d reads are still slow after 2s", i, got)
			}
		}
		close(stop)
		all.Wait()
		if got := o.peak.Load(); got > slots {
			t.Errorf("%d loads at once, want at most %d", got, slots)
		}
		// Each key was lost once, and is asked for once.
		if got := o.calls.Load(); got < keys/2 || got > keys {
			t.Errorf("%d loads, want at most one for each of %d keys", got, keys)
		}
	})
}
