package coordinator_test

import (
	"context"
	"errors"
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

// undying hands one byte store to many caches, as a server is one to many processes. It
// can be cut off.
type undying struct {
	*storetest.MapBytes
	cut   atomic.Bool
	trips atomic.Int64
}

func (u *undying) Close() error { return nil }

func (u *undying) Get(ctx context.Context, key string) ([]byte, error) {
	u.trips.Add(1)
	if u.cut.Load() {
		return nil, hang(ctx)
	}
	return u.MapBytes.Get(ctx, key)
}

func (u *undying) SetIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (bool, error) {
	u.trips.Add(1)
	if u.cut.Load() {
		return false, hang(ctx)
	}
	return u.MapBytes.SetIf(ctx, key, value, ttl, head)
}

const leaseLife = time.Second

// leased are caches of as many processes over one shared tier, with one origin.
type leased struct {
	origin
	shared *storetest.MapBytes
	caches []*coordinator.Cache[string, string]
	tiers  []*undying
	load   atomic.Pointer[coordinator.Loader[string, string]]
}

func newLeased(t *testing.T, processes int, lifetime policy.Lifetime, refresh policy.Strategy, load coordinator.Loader[string, string]) *leased {
	l := &leased{shared: storetest.NewMapBytes()}
	l.load.Store(&load)
	for range processes {
		u := &undying{MapBytes: l.shared}
		l.tiers = append(l.tiers, u)
		l.caches = append(l.caches, newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{
				memory[string]("l1"),
				{Name: "l3", Store: tier.Encode[string, string](u, codec.JSON[string]()), Breaker: tier.Breaker{Off: true}},
			},
			Lifetime: lifetime,
			Refresh:  refresh,
			Lease:    coordinator.Lease{Life: leaseLife},
			Load: func(ctx context.Context, key string) (string, error) {
				defer l.enter()()
				return (*l.load.Load())(ctx, key)
			},
		}))
	}
	return l
}

// everywhere reads the key in all caches at once and returns how long that took.
func (l *leased) everywhere(t *testing.T, key, want string) time.Duration {
	t.Helper()
	start := time.Now()
	var all sync.WaitGroup
	for i, c := range l.caches {
		for range 8 {
			all.Go(func() {
				if v, err := c.Get(t.Context(), key); v != want || err != nil {
					t.Errorf("process %d: Get = %q, %v, want %q", i, v, err, want)
				}
			})
		}
	}
	all.Wait()
	return time.Since(start)
}

// rest checks that nothing is left in the shared tier but one entry.
func (l *leased) rest(t *testing.T, entries int) {
	t.Helper()
	time.Sleep(time.Minute)
	if got := l.shared.Usage().Entries; got != int64(entries) {
		t.Errorf("%d entries and marks are left in the shared tier, want %d", got, entries)
	}
}

var hourly = policy.Lifetime{TTL: time.Hour}

// Processes that miss one key make one load (P1), also one that takes many lives of a
// lease.
func TestLeaseMakesOneLoad(t *testing.T) {
	for _, takes := range []time.Duration{200 * time.Millisecond, 5 * leaseLife} {
		virtual(t, takes.String(), func(t *testing.T) {
			l := newLeased(t, 4, hourly, nil, func(ctx context.Context, _ string) (string, error) { return "value", sleep(ctx, takes) })
			if got := l.everywhere(t, "key", "value"); got > takes+100*time.Millisecond {
				t.Errorf("it took %v, want little more than the load's %v", got, takes)
			}
			wantCalls(t, &l.origin, 1)
			leases := uint64(0)
			for _, c := range l.caches {
				leases += c.Stats().Leases
			}
			if leases != 1 {
				t.Errorf("%d leases, want 1", leases)
			}
			l.rest(t, 1)
		})
	}
}

// A load that fails gives its lease back: who waits loads at once, not when the lease
// would have ended.
func TestLeaseOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := true
		var mu sync.Mutex
		l := newLeased(t, 2, hourly, nil, func(ctx context.Context, _ string) (string, error) {
			mu.Lock()
			fails := failing
			failing = false
			mu.Unlock()
			if err := sleep(ctx, 100*time.Millisecond); fails || err != nil {
				return "", errors.New("the origin is down")
			}
			return "value", nil
		})
		start := time.Now()
		var all sync.WaitGroup
		failures := atomic.Int32{}
		for _, c := range l.caches {
			all.Go(func() {
				if _, err := c.Get(t.Context(), "key"); err != nil {
					failures.Add(1)
				}
			})
		}
		all.Wait()
		if got := time.Since(start); failures.Load() != 1 || got > 400*time.Millisecond {
			t.Errorf("%d failed, after %v; want 1 and the other's value soon", failures.Load(), got)
		}
		l.rest(t, 1)
	})
}

// A holder that is dead is replaced when its lease is over, by one; late it neither
// stores over what came nor frees another's lease.
func TestLeaseOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeased(t, 3, hourly, nil, nil)
		release := make(chan struct{})
		first := true
		var mu sync.Mutex
		load := func(ctx context.Context, _ string) (string, error) {
			mu.Lock()
			isFirst := first
			first = false
			mu.Unlock()
			if isFirst {
				<-release
				return "late", nil
			}
			return "value", sleep(ctx, 200*time.Millisecond)
		}
		l.load.Store((*coordinator.Loader[string, string])(&load))
		var late sync.WaitGroup
		late.Go(func() { _, _ = l.caches[0].Get(t.Context(), "key") })
		time.Sleep(50 * time.Millisecond)
		l.tiers[0].cut.Store(true) // dead, for all that others can see
		start := time.Now()
		var all sync.WaitGroup
		for _, c := range l.caches[1:] {
			all.Go(func() {
				if v, err := c.Get(t.Context(), "key"); v != "value" || err != nil {
					t.Errorf("Get = %q, %v", v, err)
				}
			})
		}
		all.Wait()
		if got := time.Since(start); got > leaseLife+200*time.Millisecond {
			t.Errorf("waited %v, want at most the lease's life and a load", got)
		}
		wantCalls(t, &l.origin, 2)
		l.tiers[0].cut.Store(false)
		close(release)
		late.Wait()
		time.Sleep(time.Second)
		for _, c := range l.caches[1:] {
			if err := c.Expire(t.Context(), "other"); err != nil {
				t.Error(err)
			}
		}
		fresh := newLeased(t, 0, hourly, nil, nil)
		fresh.shared = l.shared
		reader := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{shared[string]("l3", &undying{MapBytes: l.shared})}})
		if v, err := reader.Get(t.Context(), "key"); v != "value" || err != nil {
			t.Errorf("in the shared tier: %q, %v; a late holder stored over it", v, err)
		}
		l.rest(t, 1)
	})
}

// C78: a holder whose lease has gone to another ends while that one loads. It does not free
// the lease of the other, so that a third waits, and stores nothing.
func TestC78AHolderEndsUnderTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeased(t, 3, hourly, nil, nil)
		ends := make(chan struct{})
		var calls atomic.Int64
		load := func(ctx context.Context, _ string) (string, error) {
			if calls.Add(1) == 1 {
				<-ends
				return "late", nil
			}
			return "value", sleep(ctx, time.Second)
		}
		l.load.Store((*coordinator.Loader[string, string])(&load))
		var all sync.WaitGroup
		get := func(process int, want ...string) {
			all.Go(func() {
				if v, err := l.caches[process].Get(t.Context(), "key"); !slices.Contains(want, v) || err != nil {
					t.Errorf("process %d: Get = %q, %v, want one of %q", process, v, err, want)
				}
			})
		}
		get(0, "late", "value")
		time.Sleep(10 * time.Millisecond)
		l.tiers[0].cut.Store(true) // it cannot renew
		get(1, "value")
		for calls.Load() < 2 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		l.tiers[0].cut.Store(false)
		close(ends)
		time.Sleep(100 * time.Millisecond)
		get(2, "value") // while the second loads
		all.Wait()
		wantCalls(t, &l.origin, 2)
		for i, c := range l.caches[1:] {
			wantGet(t, c, "key", "value")
			if t.Failed() {
				t.Fatalf("process %d", i+1)
			}
		}
		l.rest(t, 1)
	})
}

// What a process could not tell the shared tier at first reaches it while another renews the
// lease under which it loads what was there before. The renewals are no newer than the
// load: they do not make the Delete one that was overtaken.
func TestARenewedLeaseIsNoNewerThanItsLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeased(t, 3, hourly, nil, nil)
		var truth atomic.Value
		truth.Store("old")
		load := func(ctx context.Context, _ string) (string, error) {
			v := truth.Load().(string)
			return v, sleep(ctx, 2*leaseLife)
		}
		l.load.Store((*coordinator.Loader[string, string])(&load))
		var first sync.WaitGroup
		first.Go(func() { _, _ = l.caches[0].Get(t.Context(), "key") })
		time.Sleep(leaseLife / 10)
		truth.Store("new")
		l.tiers[1].cut.Store(true)
		if err := l.caches[1].Delete(t.Context(), "key"); err == nil {
			t.Fatal("Delete: got no error, want that of the tier that was cut off")
		}
		time.Sleep(leaseLife / 2) // a renewal or two
		l.tiers[1].cut.Store(false)
		awaitReal(t, leaseLife, "the Delete has arrived", func() bool { return l.caches[1].Stats().Tiers[1].Pending == 0 })
		first.Wait()
		wantGet(t, l.caches[2], "key", "new")
	})
}

// An Expire is the end of what was loaded before it in any process, whether the shared tier
// held nothing then, the mark of a lease, or an entry, fresh or stale (W1).
func TestExpireFencesOtherProcesses(t *testing.T) {
	stale := policy.Lifetime{TTL: 10 * time.Second, StaleIfError: time.Hour}
	for _, leases := range []bool{false, true} {
		for _, held := range []string{"nothing", "a fresh entry", "a stale entry"} {
			virtual(t, fmt.Sprintf("lease %v, %s", leases, held), func(t *testing.T) {
				shared := storetest.NewMapBytes()
				var truth atomic.Value
				truth.Store("old")
				var slow atomic.Bool
				join := func() *coordinator.Cache[string, string] {
					o := coordinator.Options[string, string]{
						Tiers: []tier.Tier[string, string]{
							memory[string]("l1"),
							{Name: "l3", Store: tier.Encode[string, string](&undying{MapBytes: shared}, codec.JSON[string]())},
						},
						Lifetime: stale,
						Load: func(ctx context.Context, _ string) (string, error) {
							v := truth.Load().(string)
							if slow.Load() {
								return v, sleep(ctx, 200*time.Millisecond)
							}
							return v, nil
						},
					}
					if leases {
						o.Lease.Life = leaseLife
					}
					return newCache(t, o)
				}
				a, b, c := join(), join(), join()
				if held != "nothing" {
					wantGet(t, b, "key", "old")
				}
				if held == "a stale entry" {
					time.Sleep(11 * time.Second)
				}
				slow.Store(true)
				var loading sync.WaitGroup
				loading.Go(func() {
					if held == "a fresh entry" {
						_, _ = a.GetOrLoad(t.Context(), "key", nil)
						return
					}
					_, _ = a.Get(t.Context(), "key")
				})
				time.Sleep(100 * time.Millisecond)
				truth.Store("new")
				if err := b.Expire(t.Context(), "key"); err != nil {
					t.Fatal(err)
				}
				slow.Store(false)
				loading.Wait()
				wantGet(t, c, "key", "new")
			})
		}
	}
}

// A Delete or Set breaks the lease: who reads after it does not wait for the load from
// before, which stores nothing.
func TestLeaseIsBroken(t *testing.T) {
	for name, write := range map[string]func(*coordinator.Cache[string, string]) error{
		"delete": func(c *coordinator.Cache[string, string]) error { return c.Delete(ctx, "key") },
		"set":    func(c *coordinator.Cache[string, string]) error { return c.Set(ctx, "key", "new") },
	} {
		virtual(t, name, func(t *testing.T) {
			release := make(chan struct{})
			calls := atomic.Int32{}
			l := newLeased(t, 2, hourly, nil, func(context.Context, string) (string, error) {
				if calls.Add(1) == 1 {
					<-release
					return "old", nil
				}
				return "new", nil
			})
			var old sync.WaitGroup
			old.Go(func() {
				if v, err := l.caches[0].Get(t.Context(), "key"); v != "old" || err != nil {
					t.Errorf("who waited before: %q, %v", v, err)
				}
			})
			synctest.Wait()
			if err := write(l.caches[1]); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if v, err := l.caches[1].Get(t.Context(), "key"); v != "new" || err != nil {
				t.Errorf("after the write: %q, %v", v, err)
			}
			if got := time.Since(start); got > 10*time.Millisecond {
				t.Errorf("it waited %v for the load from before", got)
			}
			close(release)
			old.Wait()
			synctest.Wait()
			for i, c := range l.caches {
				if err := c.Expire(t.Context(), "nothing"); err != nil {
					t.Error(err)
				}
				if v, err := c.Get(t.Context(), "key"); v != "new" || err != nil {
					t.Errorf("process %d in the end: %q, %v", i, v, err)
				}
			}
			l.rest(t, 1)
		})
	}
}

// A lease beside a stale value does not lose it: where the load fails all serve it, and
// where it succeeds all have the new one by one load.
func TestLeaseKeepsTheStaleValue(t *testing.T) {
	lifetime := policy.Lifetime{TTL: time.Second, StaleIfError: time.Hour}
	synctest.Test(t, func(t *testing.T) {
		l := newLeased(t, 4, lifetime, nil, func(context.Context, string) (string, error) { return "old", nil })
		l.everywhere(t, "key", "old")
		wantCalls(t, &l.origin, 1)
		time.Sleep(2 * time.Second)
		down := func(ctx context.Context, _ string) (string, error) {
			_ = sleep(ctx, 10*time.Millisecond)
			return "", errors.New("down")
		}
		l.load.Store((*coordinator.Loader[string, string])(&down))
		l.everywhere(t, "key", "old")
		time.Sleep(time.Minute)
		up := func(ctx context.Context, _ string) (string, error) { return "new", sleep(ctx, 200*time.Millisecond) }
		l.load.Store((*coordinator.Loader[string, string])(&up))
		before := l.calls.Load()
		if got := l.everywhere(t, "key", "new"); got > 400*time.Millisecond {
			t.Errorf("it took %v", got)
		}
		if got := l.calls.Load() - before; got != 1 {
			t.Errorf("%d loads, want 1", got)
		}
	})
}

// Refreshes take the lease too: one process refreshes, the others take its answer (P3).
func TestLeaseOfARefresh(t *testing.T) {
	lifetime := policy.Lifetime{TTL: time.Second, StaleWhileRevalidate: time.Hour}
	synctest.Test(t, func(t *testing.T) {
		l := newLeased(t, 4, lifetime, policy.StaleWhileRevalidate{}, func(ctx context.Context, _ string) (string, error) {
			return "value", sleep(ctx, 100*time.Millisecond)
		})
		l.everywhere(t, "key", "value")
		time.Sleep(1500 * time.Millisecond)
		if got := l.everywhere(t, "key", "value"); got > 10*time.Millisecond {
			t.Errorf("a stale read waited %v", got)
		}
		time.Sleep(500 * time.Millisecond)
		wantCalls(t, &l.origin, 2)
		for i, c := range l.caches {
			if r, err := c.Lookup(t.Context(), "key"); err != nil || r.State != coordinator.Fresh {
				t.Errorf("process %d: %+v, %v, want the fresh answer of another", i, r, err)
			}
		}
	})
}

// Where the tier is away everybody loads, as without leases.
func TestLeaseWithoutItsTier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeased(t, 3, hourly, nil, func(context.Context, string) (string, error) { return "value", nil })
		for _, u := range l.tiers {
			u.cut.Store(true)
		}
		l.everywhere(t, "key", "value")
		wantCalls(t, &l.origin, 3)
		for _, u := range l.tiers {
			u.cut.Store(false)
		}
	})
}

// A lease costs a miss one round trip, a stale value three (to take it, to look again, to
// give it back), and a hit
// none.
func TestLeaseCost(t *testing.T) {
	for _, leases := range []bool{false, true} {
		virtual(t, fmt.Sprint(leases), func(t *testing.T) {
			u := &undying{MapBytes: storetest.NewMapBytes()}
			o := coordinator.Options[string, string]{
				Tiers:    []tier.Tier[string, string]{{Name: "l3", Store: tier.Encode[string, string](u, codec.JSON[string]())}},
				Lifetime: policy.Lifetime{TTL: time.Second, StaleIfError: time.Hour},
				Load:     func(context.Context, string) (string, error) { return "value", nil },
			}
			if leases {
				o.Lease.Life = leaseLife
			}
			c := newCache(t, o)
			trips := func(what string, without, with int64) {
				t.Helper()
				before := u.trips.Load()
				wantGet(t, c, "key", "value")
				want := map[bool]int64{false: without, true: with}[leases]
				if got := u.trips.Load() - before; got != want {
					t.Errorf("%s: %d round trips, want %d", what, got, want)
				}
			}
			trips("a miss", 2, 3)
			trips("a hit", 1, 1)
			time.Sleep(2 * time.Second)
			trips("a stale value", 2, 5)
		})
	}
}

func TestLeaseIsChecked(t *testing.T) {
	for _, o := range []coordinator.Options[string, string]{
		{Tiers: []tier.Tier[string, string]{memory[string]("l1")}, Lease: coordinator.Lease{Life: time.Second}},
		{Tiers: []tier.Tier[string, string]{shared[string]("l3", storetest.NewMapBytes())}, Lease: coordinator.Lease{Life: time.Millisecond}},
	} {
		o.Lifetime = hourly
		if c, err := coordinator.New(o); err == nil {
			_ = c.Close(ctx)
			t.Errorf("New with %+v: no error", o.Lease)
		}
	}
}

// Real servers: four caches, 64 callers each, a hundred cold keys, one load each.
func TestLeaseOverServers(t *testing.T) {
	eachRemote(t, func(t *testing.T, r remote) {
		t.Parallel() // it waits most of its time
		addr := r.start(t).Addr()
		var o origin
		var caches []*coordinator.Cache[string, string]
		for range 4 {
			caches = append(caches, newCache(t, coordinator.Options[string, string]{
				Tiers: []tier.Tier[string, string]{
					memory[string]("l1"),
					{Name: "l3", Store: tier.Encode[string, string](r.open(t, addr), codec.JSON[string]()), Timeout: 5 * time.Second},
				},
				Lifetime: hourly,
				Lease:    coordinator.Lease{Life: 5 * time.Second},
				Load: func(ctx context.Context, key string) (string, error) {
					defer o.enter()()
					return "value of " + key, sleep(ctx, 200*time.Millisecond)
				},
			}))
		}
		var all sync.WaitGroup
		for _, c := range caches {
			for caller := range 64 {
				all.Go(func() {
					for i := range 100 {
						key := fmt.Sprint("key ", (i+caller)%100)
						if v, err := c.Get(ctx, key); v != "value of "+key || err != nil {
							t.Errorf("Get(%s) = %q, %v", key, v, err)
							return
						}
					}
				})
			}
		}
		all.Wait()
		wantCalls(t, &o, 100)
	})
}
