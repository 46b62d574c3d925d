package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

var errDown = errors.New("down")

// refusing returns a remote store that refuses the given operations while it is
// told to.
func refusing(down *atomic.Bool, ops ...string) *hookedSwapper[string] {
	return hookSwapper(tier.Encode[string, string](storetest.NewMapBytes(), codec.JSON[string]()),
		func(_ context.Context, op, _ string) error {
			for _, o := range ops {
				if o == op && down.Load() {
					return errDown
				}
			}
			return nil
		})
}

// C49, W4: a tier that fails does not fail a Get that can be answered without it,
// whichever of its operations fail.
func TestC49TierFails(t *testing.T) {
	for _, ops := range [][]string{{"get"}, {"setif"}, {"get", "setif"}, {"get", "set", "setif", "bury", "delete"}} {
		virtual(t, fmt.Sprint(ops), func(t *testing.T) {
			var o origin
			var down atomic.Bool
			down.Store(true)
			l2 := refusing(&down, ops...)
			c := newCache(t, coordinator.Options[string, string]{
				Tiers: []tier.Tier[string, string]{memory[string]("l1"), {Name: "l2", Store: l2}},
				Load:  o.after(0, "v"),
			})
			wantGet(t, c, "k", "v")
			wantGet(t, c, "k", "v")
			wantCalls(t, &o, 1)
			s := c.Stats()
			if s.Tiers[1].Errors == 0 || s.Errors != 0 {
				t.Errorf("stats: %d errors of the tier, %d of requests", s.Tiers[1].Errors, s.Errors)
			}
			// When it is back it gets what it lacked.
			down.Store(false)
			time.Sleep(time.Minute / 2)
			synctest.Wait()
			if got := c.Stats().Tiers[1].Pending; got != 0 {
				t.Errorf("pending: got %d", got)
			}
		})
	}
}

// W4: Set and Delete answer with which tiers failed; until those have been told,
// this process reads what was written, and then so do others.
func TestFailedWritesAreRepeated(t *testing.T) {
	for _, op := range []string{"set", "delete"} {
		virtual(t, op, func(t *testing.T) {
			var down atomic.Bool
			l2 := refusing(&down, "set", "setif", "bury", "delete")
			l1 := storetest.NewMap[string, string]()
			c := newCache(t, coordinator.Options[string, string]{
				Tiers:    []tier.Tier[string, string]{{Name: "l1", Store: l1}, {Name: "l2", Store: l2}},
				Lifetime: policy.Lifetime{TTL: time.Hour},
				Load:     func(context.Context, string) (string, error) { return "loaded", nil },
			})
			if err := c.Set(ctx, "k", "old"); err != nil {
				t.Fatal(err)
			}
			down.Store(true)
			var err error
			want := "new"
			if op == "set" {
				err = c.Set(ctx, "k", "new")
			} else {
				err, want = c.Delete(ctx, "k"), "loaded"
			}
			var w *coordinator.WriteError
			if !errors.As(err, &w) || len(w.Tiers) != 1 || w.Tiers[0].Tier != "l2" || !errors.Is(err, errDown) {
				t.Fatalf("got %v, want a WriteError of l2", err)
			}
			for range 3 {
				wantGet(t, c, "k", want)
				_ = l1.Delete(ctx, "k") // l2 could be reached, and has the old value
			}
			if got := c.Stats().Tiers[1].Pending; got != 1 {
				t.Errorf("pending: got %d, want 1", got)
			}
			time.Sleep(5 * time.Minute)
			down.Store(false)
			time.Sleep(10 * time.Second) // the longest wait between tries
			synctest.Wait()
			s := c.Stats().Tiers[1]
			if s.Pending != 0 || s.Repeated == 0 {
				t.Errorf("pending %d, repeated %d", s.Pending, s.Repeated)
			}
			e, err := l2.store.Get(ctx, "k")
			if err != nil || e != nil && e.Value() != want {
				t.Errorf("l2: got %v, %v", e, err)
			}
		})
	}
}

// What cannot be remembered is not forgotten: the tier is not trusted for what it
// holds of those keys from before.
func TestForgottenWritesAreSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		l2 := refusing(&down, "set", "setif", "bury", "delete")
		l1 := storetest.NewMap[string, string]()
		var o origin
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{{Name: "l1", Store: l1}, {Name: "l2", Store: l2}},
			Lifetime: policy.Lifetime{TTL: time.Hour},
			Limits:   coordinator.Limits{Recovery: 10},
			Load:     o.after(0, "new"),
		})
		for i := range 100 {
			if err := c.Set(ctx, fmt.Sprint(i), "old"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		down.Store(true)
		for i := range 100 {
			if err := c.Delete(ctx, fmt.Sprint(i)); err == nil {
				t.Fatal("Delete did not fail")
			}
		}
		down.Store(false)
		if s := c.Stats().Tiers[1]; s.Pending != 10 || s.Forgotten != 90 {
			t.Errorf("pending %d, forgotten %d", s.Pending, s.Forgotten)
		}
		for i := range 100 {
			wantGet(t, c, fmt.Sprint(i), "new")
		}
	})
}

// A first tier that fails is not asked past the coordinator's knowledge of it.
func TestFailedFirstTier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		top := &localHook{hook(storetest.NewMap[string, string](), func(_ context.Context, op, _ string) error {
			if op != "get" && down.Load() {
				return errDown
			}
			return nil
		})}
		c := newCache(t, coordinator.Options[string, string]{
			Tiers: []tier.Tier[string, string]{{Name: "l1", Store: top}, memory[string]("l2")},
			Load:  func(context.Context, string) (string, error) { return "loaded", nil },
		})
		if err := c.Set(ctx, "k", "old"); err != nil {
			t.Fatal(err)
		}
		down.Store(true)
		if err := c.Set(ctx, "k", "new"); err == nil {
			t.Error("Set did not tell of the failure")
		}
		wantGet(t, c, "k", "new")
		if err := c.Delete(ctx, "k"); err == nil {
			t.Error("Delete did not tell of the failure")
		}
		wantGet(t, c, "k", "loaded")
		down.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for range 2 { // the first fills, the second is served from it
			wantGet(t, c, "k", "loaded")
		}
		if got := c.Stats().Tiers[0].Hits; got == 0 {
			t.Error("the first tier is not used again")
		}
	})
}

type localHook struct{ *hooked[string] }

func (l *localHook) Local() bool { return true }

// W5: a write that a tier rejects, or that is too large for it, leaves no older
// value behind it there.
func TestRejectedWriteLeavesNothingOlder(t *testing.T) {
	for name, big := range map[string]tier.Store[string, string]{
		"ristretto": ristretto.New[string, string](ristretto.Options[string, string]{
			MaxCost: 1000, Cost: func(_ string, e *tier.Entry[string]) int64 { return int64(len(e.Value())) },
		}),
		"a codec that fails": tier.Encode[string, string](storetest.NewMapBytes(), shortOnly{codec.JSON[string]()}),
	} {
		t.Run(name, func(t *testing.T) {
			l1 := lru.New[string, string](10)
			c := newCache(t, coordinator.Options[string, string]{
				Tiers: []tier.Tier[string, string]{{Name: "l1", Store: l1}, {Name: "l2", Store: big}},
				Load:  func(context.Context, string) (string, error) { return string(make([]byte, 2000)), nil },
			})
			if err := c.Set(ctx, "k", "old"); err != nil {
				t.Fatal(err)
			}
			large := string(make([]byte, 3000))
			_ = c.Set(ctx, "k", large)
			wantGet(t, c, "k", large)
			if err := l1.Delete(ctx, "k"); err != nil {
				t.Fatal(err)
			}
			if v, err := c.Get(ctx, "k"); err != nil || v == "old" {
				t.Errorf("got %d bytes, %v", len(v), err)
			}
		})
	}
}

type shortOnly struct{ tier.Codec[string] }

func (s shortOnly) Append(dst []byte, v string) ([]byte, error) {
	if len(v) > 1000 {
		return nil, errors.New("too long")
	}
	return s.Codec.Append(dst, v)
}

// C63, W2: Set, then Get in the same process, over a store that queues and drops its
// writes; the answer is never older, and nothing that was deleted comes back.
func TestC63ReadYourWrites(t *testing.T) {
	for _, l1 := range []int{0, 1} {
		t.Run(fmt.Sprintf("l1 of %d", l1), func(t *testing.T) {
			tiers := []tier.Tier[int, int]{{Name: "l2", Store: ristretto.New[int, int](ristretto.Options[int, int]{MaxCost: 1 << 20})}}
			if l1 > 0 {
				tiers = append([]tier.Tier[int, int]{{Name: "l1", Store: lru.New[int, int](l1)}}, tiers...)
			}
			c := newCache(t, coordinator.Options[int, int]{
				Tiers: tiers,
				Load:  func(context.Context, int) (int, error) { return -1, nil }, // a fresh load
			})
			for i := range 3000 {
				if err := c.Set(ctx, i, i); err != nil {
					t.Fatal(err)
				}
				if v, err := c.Get(ctx, i); err != nil || v != i && v != -1 {
					t.Fatalf("Get(%d): got %d, %v", i, v, err)
				}
			}
			many(8, func(w int) {
				for i := range 1500 {
					k := 100_000 + w*10_000 + i
					for v := 1; v <= 2; v++ {
						_ = c.Set(ctx, k, v)
					}
					if v, err := c.Get(ctx, k); err != nil || v == 1 {
						t.Errorf("Get(%d): got %d, %v, after a Set of 2", k, v, err)
					}
					_ = c.Delete(ctx, k)
					if v, err := c.Get(ctx, k); err != nil || v != -1 {
						t.Errorf("Get(%d): got %d, %v, after Delete", k, v, err)
					}
				}
			})
			for k := 100_000; k < 180_000; k += 7 {
				if r, err := c.Peek(ctx, k); err == nil && r.Value > 0 {
					t.Errorf("%d came back as %d", k, r.Value)
				}
			}
		})
	}
}

// Writers of one key at once leave one value in all tiers.
func TestConcurrentSetsAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := []*storetest.Map[string, string]{storetest.NewMap[string, string](), storetest.NewMap[string, string](), storetest.NewMap[string, string]()}
		var n atomic.Int64
		jitter := func(ctx context.Context, _, _ string) error {
			return sleep(ctx, time.Duration(n.Add(7919)%13)*time.Millisecond)
		}
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{
			{Name: "l1", Store: stores[0]}, {Name: "l2", Store: hook(stores[1], jitter)}, {Name: "l3", Store: hook(stores[2], jitter)},
		}})
		for range 20 {
			many(10, func(i int) {
				if err := c.Set(ctx, "k", fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
			var got []string
			for _, s := range stores {
				e, err := s.Get(ctx, "k")
				if err != nil || e == nil {
					t.Fatal(e, err)
				}
				got = append(got, e.Value())
			}
			if got[0] != got[1] || got[1] != got[2] {
				t.Errorf("the tiers have %q", got)
			}
		}
	})
}

// A Set that cannot have its turn within its context has done nothing and says so.
func TestWriteWaitsWithinContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := hook(storetest.NewMap[string, string](), func(ctx context.Context, op, _ string) error {
			if op == "set" {
				return sleep(ctx, 100*time.Millisecond)
			}
			return nil
		})
		c := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{{Name: "l1", Store: slow}}})
		go func() { _ = c.Set(ctx, "k", "first") }()
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		err := c.Set(short, "k", "second")
		wantError(t, "Set", err, context.DeadlineExceeded)
		var w *coordinator.WriteError
		if errors.As(err, &w) {
			t.Errorf("got %v, want no WriteError: nothing was done", err)
		}
		time.Sleep(time.Second)
		wantGet(t, c, "k", "first")
		if got := c.Stats().Keys; got != 0 {
			t.Errorf("keys: got %d, want 0", got)
		}
	})
}

// stuckContext is a context whose Err does not return, once it has ended, until it is freed.
type stuckContext struct {
	context.Context
	ended, waits, met, free chan struct{}
	onWait, onMeet          sync.Once
}

func (s *stuckContext) Done() <-chan struct{} {
	s.onWait.Do(func() { close(s.waits) })
	return s.ended
}

func (s *stuckContext) Err() error {
	select {
	case <-s.ended:
		s.onMeet.Do(func() { close(s.met) })
		<-s.free
		return context.Canceled
	default:
		return nil
	}
}

// heldSet is a store in memory whose Set does not return until it is let.
type heldSet struct {
	*storetest.Map[string, int]
	begun, end chan struct{}
}

func (s heldSet) Set(ctx context.Context, key string, e *tier.Entry[int], ttl time.Duration) error {
	close(s.begun)
	<-s.end
	return s.Map.Set(ctx, key, e, ttl)
}

// Who waits to write a key holds up nobody else, whatever his context does.
func TestAContextThatIsStuckHoldsUpNobody(t *testing.T) {
	for name, write := range map[string]func(context.Context, *coordinator.Cache[string, int]) error{
		"Set":   func(ctx context.Context, c *coordinator.Cache[string, int]) error { return c.Set(ctx, "k", 2) },
		"Clear": func(ctx context.Context, c *coordinator.Cache[string, int]) error { return c.Clear(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			store := heldSet{Map: storetest.NewMap[string, int](), begun: make(chan struct{}), end: make(chan struct{})}
			c := newCache(t, coordinator.Options[string, int]{Tiers: []tier.Tier[string, int]{{Name: "l1", Store: store}}})
			var calls sync.WaitGroup
			calls.Go(func() { _ = c.Set(ctx, "k", 1) })
			<-store.begun
			stuck := &stuckContext{
				Context: ctx, ended: make(chan struct{}),
				waits: make(chan struct{}), met: make(chan struct{}), free: make(chan struct{}),
			}
			wrote, read := make(chan error, 1), make(chan struct{})
			calls.Go(func() { wrote <- write(stuck, c) })
			<-stuck.waits
			close(stuck.ended)
			<-stuck.met
			calls.Go(func() {
				_, _ = c.Get(ctx, "k") // has the lock that the key's turn is under
				close(read)
			})
			select {
			case <-read:
			case <-time.After(5 * time.Second):
				t.Error("a reader waits for the method of a context that is not his")
			}
			close(stuck.free)
			if err := <-wrote; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the end of the context", err)
			}
			close(store.end)
			calls.Wait()
		})
	}
}

// A write that is tried again does not overwrite what another process has written
// meanwhile.
func TestRepeatKeepsNewerWrites(t *testing.T) {
	for _, late := range []string{"set", "delete"} {
		for _, other := range []string{"set", "delete"} {
			virtual(t, late+" repeated after "+other, func(t *testing.T) {
				server := storetest.NewMapBytes()
				var down atomic.Bool
				a2 := hookSwapper(tier.Encode[string, string](server.Another(), codec.JSON[string]()), func(context.Context, string, string) error {
					if down.Load() {
						return errDown
					}
					return nil
				})
				node := func(l2 tier.Store[string, string]) *coordinator.Cache[string, string] {
					return newCache(t, coordinator.Options[string, string]{
						Tiers: []tier.Tier[string, string]{memory[string]("l1"), {Name: "l2", Store: l2}},
						Load:  func(context.Context, string) (string, error) { return "loaded", nil },
					})
				}
				a, b := node(a2), node(tier.Encode[string, string](server.Another(), codec.JSON[string]()))
				do := func(c *coordinator.Cache[string, string], op, v string) error {
					if op == "set" {
						return c.Set(ctx, "k", v)
					}
					return c.Delete(ctx, "k")
				}
				if err := b.Set(ctx, "k", "first"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
				down.Store(true)
				if err := do(a, late, "a's"); err == nil {
					t.Fatal("did not fail")
				}
				time.Sleep(time.Millisecond)
				if err := do(b, other, "b's"); err != nil {
					t.Fatal(err)
				}
				down.Store(false)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if got := a.Stats().Tiers[1].Pending; got != 0 {
					t.Errorf("pending: got %d", got)
				}
				reader := tier.Encode[string, string](server.Another(), codec.JSON[string]())
				e, err := reader.Get(ctx, "k")
				switch {
				case err != nil:
					t.Error(err)
				case other == "set" && (e == nil || e.Value() != "b's"):
					t.Errorf("the shared tier has %v, want b's", e)
				case other == "delete" && e != nil:
					t.Errorf("the shared tier has %q, want nothing", e.Value())
				}
			})
		}
	}
}

// A Set that is too large for a tier overtakes an older one that waits to be tried again there.
func TestTooLargeOvertakesPendingWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fb := storetest.NewFaultyBytes(storetest.NewMapBytes())
		fb.SetRemote()
		c := newCache(t, coordinator.Options[string, string]{
			Tiers:    []tier.Tier[string, string]{{Name: "l1", Store: storetest.NewMap[string, string](), TTL: time.Second}, shared[string]("l3", fb)},
			Lifetime: policy.Lifetime{TTL: time.Minute},
			Load:     func(context.Context, string) (string, error) { return "v3", nil },
		})
		fb.Inject(storetest.Fail(errors.New("down")))
		_ = c.Set(ctx, "k", "v1")
		fb.Heal()
		fb.Inject(storetest.Fail(tier.ErrTooLarge), storetest.Set, storetest.SetIf)
		_ = c.Set(ctx, "k", "v2-huge")
		fb.Heal()
		time.Sleep(2 * time.Second)
		if v, _ := c.Get(ctx, "k"); v == "v1" {
			t.Errorf("got %q, older than the last Set", v)
		}
	})
}

// A failed Delete is remembered for as long as another process lets its entries live.
func TestDeleteIsRememberedForOthersLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewMapBytes()
		fb := storetest.NewFaultyBytes(m.Another())
		fb.SetRemote()
		b := newCache(t, coordinator.Options[string, string]{Lifetime: policy.Lifetime{TTL: time.Hour}, Tiers: []tier.Tier[string, string]{shared[string]("l3", m)}})
		a := newCache(t, coordinator.Options[string, string]{Lifetime: policy.Lifetime{TTL: time.Minute},
			Tiers: []tier.Tier[string, string]{memory[string]("l1"), shared[string]("l3", fb)}})
		_ = b.Set(ctx, "k", "old")
		wantGet(t, a, "k", "old") // a has seen that it lives for an hour
		fb.Inject(storetest.Fail(errors.New("down")))
		if err := a.Delete(ctx, "k"); err == nil {
			t.Error("Delete did not fail")
		}
		time.Sleep(2 * time.Minute)
		fb.Heal()
		time.Sleep(time.Minute)
		if v, err := a.Get(ctx, "k"); err == nil {
			t.Errorf("deleted value back: %q", v)
		}
	})
}

// Keys that a tier refuses for ever do not keep it from being told of others.
func TestRefusedKeysDoNotStarveOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := storetest.NewFaulty(storetest.NewMap[int, int]())
		fs.SetRemote()
		c := newCache(t, coordinator.Options[int, int]{Lifetime: policy.Lifetime{TTL: time.Hour}, Tiers: []tier.Tier[int, int]{{Name: "l1", Store: storetest.NewMap[int, int]()}, {Name: "l2", Store: fs}}})
		fs.Inject(storetest.Fail(errors.New("down")))
		for i := range 2000 {
			_ = c.Set(ctx, i, i)
		}
		fs.Heal()
		// half of the keys are refused by the server for ever
		fs.Inject(func(_ context.Context, call storetest.Call, do func() error) error {
			if call.Keys[0].(int)%2 == 0 {
				return errors.New("WRONGTYPE")
			}
			return do()
		}, storetest.Set, storetest.Delete)
		time.Sleep(2 * time.Minute)
		s := c.Stats().Tiers[1]
		t.Logf("2 minutes after recovery: repeated %d of 1000 good, pending %d", s.Repeated, s.Pending)
		if s.Repeated < 1000 {
			t.Errorf("good keys starve")
		}
	})
}
