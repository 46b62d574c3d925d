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

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

// process is a cache as it would be in a process of its own.
type process struct {
	*coordinator.Cache[string, string]
	bus *storetest.HubBus
	l3  *storetest.FaultyBytes
	origin
}

// fleet is several processes over one shared tier and one bus.
type fleet struct {
	hub  *storetest.BusHub
	l3   *storetest.MapBytes
	edit func(*coordinator.Options[string, string])
}

func newFleet() *fleet {
	return &fleet{hub: storetest.NewBusHub(), l3: storetest.NewMapBytes()}
}

// join adds a process with two tiers in memory.
func (f *fleet) join(t *testing.T) *process {
	t.Helper()
	p := &process{bus: f.hub.Open(), l3: storetest.NewFaultyBytes(f.l3.Another())}
	o := coordinator.Options[string, string]{
		Name: "fleet",
		Tiers: []tier.Tier[string, string]{
			memory[string]("l1"), {Name: "l2", Store: lru.New[string, string](100)},
			{Name: "l3", Store: tier.Encode[string, string](p.l3, codec.JSON[string]())},
		},
		Lifetime: policy.Lifetime{TTL: time.Hour},
		Backoff:  policy.Backoff{Initial: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		Load:     p.after(0, "loaded"),
		Bus:      p.bus,
	}
	if f.edit != nil {
		f.edit(&o)
	}
	p.Cache = newCache(t, o)
	synctest.Wait()
	return p
}

// wantFrom checks the value and the tier that it comes from; tier "" is the loader.
func (p *process) wantFrom(t *testing.T, key, value, from string) {
	t.Helper()
	r, err := p.Lookup(ctx, key)
	if err != nil || r.Value != value || r.Tier != from {
		t.Errorf("Lookup(%q): got %q from %q, %v, want %q from %q", key, r.Value, r.Tier, err, value, from)
	}
}

func (p *process) mustSet(t *testing.T, key, value string) {
	t.Helper()
	if err := p.Set(ctx, key, value); err != nil {
		t.Errorf("Set: %v", err)
	}
}

// settle lets the first heartbeats pass.
func settle() {
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

func TestBusDropsWhatOthersWrite(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		a, b := f.join(t), f.join(t)
		settle()
		a.mustSet(t, "k", "1")
		a.mustSet(t, "other", "1")
		synctest.Wait()
		b.wantFrom(t, "k", "1", "l3")
		b.wantFrom(t, "k", "1", "l1")
		b.wantFrom(t, "other", "1", "l3")

		a.mustSet(t, "k", "2")
		synctest.Wait()
		b.wantFrom(t, "k", "2", "l3")
		b.wantFrom(t, "other", "1", "l1")
		a.wantFrom(t, "k", "2", "l1") // its own message leaves it alone

		if err := a.Delete(ctx, "k"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		b.wantFrom(t, "k", "loaded", "")

		b.wantFrom(t, "k", "loaded", "l1")
		if err := a.Expire(ctx, "k"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		b.wantFrom(t, "k", "loaded", "")

		if err := a.Clear(ctx); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		b.wantFrom(t, "other", "loaded", "")

		sa, sb := a.Stats().Bus, b.Stats().Bus
		if !sa.Connected || !sb.Connected || sa.Published < 4 || sb.Received < 5 || sb.Applied < 4 || sb.Gaps != 0 || sb.Own == 0 ||
			sa.Failures != 0 || sa.Waiting != 0 || sb.Publishers != 1 || sb.MaxLag > time.Second {
			t.Errorf("stats: a %+v\nb %+v", sa, sb)
		}
	})
}

// Without a shared tier the bus alone keeps the tiers in memory together.
func TestBusWithoutASharedTier(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		f.edit = func(o *coordinator.Options[string, string]) {
			o.Tiers = o.Tiers[:2]
			o.Lifetime.StaleWhileRevalidate = time.Minute
			o.Refresh = policy.StaleWhileRevalidate{}
		}
		a, b := f.join(t), f.join(t)
		settle()
		b.wantFrom(t, "k", "loaded", "")
		a.mustSet(t, "k", "2")
		synctest.Wait()
		b.wantFrom(t, "k", "loaded", "")
		a.wantFrom(t, "k", "2", "l1")

		// What is expired elsewhere is stale here, and not gone.
		if err := a.Expire(ctx, "k"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if r, err := b.Lookup(ctx, "k"); err != nil || r.State != coordinator.Stale || !r.Refreshing {
			t.Errorf("after Expire elsewhere: %+v, %v", r, err)
		}
	})
}

// W1: what has been read from below before another process wrote is not stored above
// after that was told.
func TestBusFencesAFillUnderWay(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		a, b := f.join(t), f.join(t)
		settle()
		a.mustSet(t, "k", "1")
		synctest.Wait()
		b.l3.Inject(answersLate(100*time.Millisecond), storetest.Get)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if got, err := b.Get(ctx, "k"); err != nil || got != "1" {
				t.Errorf("the read that began before: %q, %v", got, err)
			}
		}()
		time.Sleep(10 * time.Millisecond)
		a.mustSet(t, "k", "2")
		<-done
		b.l3.Heal()
		b.wantFrom(t, "k", "2", "l3")
	})
}

// After a gap nothing from before is stored by a fill under way, and nothing is served
// from memory, also while a key's turn keeps the tiers from being cleared.
func TestBusFencesAtAGap(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		a, b := f.join(t), f.join(t)
		settle()
		for _, k := range []string{"k", "other"} {
			a.mustSet(t, k, "1")
			synctest.Wait()
		}
		b.wantFrom(t, "other", "1", "l3")
		f.hub.Meddle(lossy(func() bool { return true }))
		slow := func(ctx context.Context, _ storetest.Call, do func() error) error {
			err := do()
			_ = sleep(ctx, 200*time.Millisecond)
			return err
		}
		b.l3.Inject(storetest.OnKey("k", slow), storetest.Get)
		b.l3.Inject(storetest.OnKey("held", storetest.Slow(300*time.Millisecond)))
		var done sync.WaitGroup
		done.Go(func() { _, _ = b.Get(ctx, "k") })
		done.Go(func() { _ = b.Set(ctx, "held", "x") })
		time.Sleep(10 * time.Millisecond)
		a.mustSet(t, "k", "2")
		a.mustSet(t, "other", "2")
		b.bus.Cut()
		synctest.Wait()
		b.wantFrom(t, "other", "2", "l3")
		done.Wait()
		b.l3.Heal()
		b.wantFrom(t, "k", "2", "l3")
		b.bus.Restore()
		synctest.Wait()
	})
}

// The turn of the key may be taken for as long as a shared tier takes; other keys do not
// wait for that.
func TestBusDoesNotWaitForATurn(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		a, b := f.join(t), f.join(t)
		settle()
		b.wantFrom(t, "other", "loaded", "")
		b.l3.Inject(storetest.OnKey("k", storetest.Slow(300*time.Millisecond)))
		go func() { _ = b.Set(ctx, "k", "mine") }()
		time.Sleep(10 * time.Millisecond)
		a.mustSet(t, "k", "2")
		a.mustSet(t, "other", "2")
		synctest.Wait()
		b.wantFrom(t, "other", "2", "l3")
		time.Sleep(5 * time.Second)
		if r, err := b.Peek(ctx, "k"); err != nil || r.Tier != "l3" {
			t.Errorf("after a write on both sides: %+v, %v, want what the shared tier has", r, err)
		}
	})
}

// lossy drops the messages that a condition holds for.
func lossy(lose func() bool) func(string, []byte) [][]byte {
	return func(_ string, m []byte) [][]byte {
		if lose() {
			return nil
		}
		return [][]byte{m}
	}
}

// C36: a message that is lost without anybody's being told is missed by its number.
func TestC36ALostMessageIsMissed(t *testing.T) {
	for _, next := range []string{"message", "heartbeat"} {
		virtual(t, "by the next "+next, func(t *testing.T) {
			f := newFleet()
			a, b := f.join(t), f.join(t)
			settle()
			for _, k := range []string{"k", "other"} {
				a.mustSet(t, k, "1")
				synctest.Wait()
				b.wantFrom(t, k, "1", "l3")
			}
			f.hub.Meddle(lossy(func() bool { return true }))
			a.mustSet(t, "k", "2")
			synctest.Wait()
			f.hub.Meddle(nil)
			b.wantFrom(t, "k", "1", "l1") // nobody can know yet
			if next == "message" {
				a.mustSet(t, "another", "1")
			} else {
				time.Sleep(2 * time.Second)
			}
			synctest.Wait()
			b.wantFrom(t, "k", "2", "l3")
			b.wantFrom(t, "other", "1", "l3")
			if got := b.Stats().Bus.Gaps; got != 1 {
				t.Errorf("gaps: got %d, want 1", got)
			}
		})
	}
}

// Messages that come twice or late do no harm.
func TestBusDuplicatesAndReordering(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		a, b := f.join(t), f.join(t)
		settle()
		f.hub.Meddle(func(_ string, m []byte) [][]byte { return [][]byte{m, m} })
		for i := range 10 {
			a.mustSet(t, "k", fmt.Sprint(i))
			synctest.Wait()
			b.wantFrom(t, "k", fmt.Sprint(i), "l3")
		}
		time.Sleep(time.Minute)
		if got := b.Stats().Bus; got.Gaps != 0 || got.Dropped != 1 {
			t.Errorf("after duplicates: %+v", got)
		}
		var held []byte
		f.hub.Meddle(func(_ string, m []byte) [][]byte {
			if held == nil {
				held = append(held, m...)
				return nil
			}
			late := held
			held = nil
			return [][]byte{append([]byte(nil), m...), late} // the second before the first
		})
		for i := range 11 {
			a.mustSet(t, "k", fmt.Sprint("late ", i))
			synctest.Wait()
		}
		f.hub.Meddle(nil)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		b.wantFrom(t, "k", "late 10", "l3")
	})
}

// What cannot be read may have been an announcement.
func TestBusUnreadableMessages(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		b := f.join(t)
		settle()
		other := f.hub.Open()
		defer other.Close()
		rng := rand.New(rand.NewPCG(1, 2))
		random := make([]byte, 100)
		for i := range random {
			random[i] = byte(rng.Uint32())
		}
		for i, m := range [][]byte{nil, {0xB5}, {0xB5, 2, 1, 0}, random, []byte("hello")} {
			b.wantFrom(t, "k", "loaded", map[bool]string{true: "", false: "l3"}[i == 0])
			b.wantFrom(t, "k", "loaded", "l1")
			if err := other.Publish(ctx, "terrace:fleet", m); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := b.Stats().Bus.Gaps; got != uint64(i+1) {
				t.Errorf("message %d: %d gaps, want %d", i, got, i+1)
			}
		}
		b.wantFrom(t, "k", "loaded", "l3")
		wantCalls(t, &b.origin, 1) // nothing is loaded again that a shared tier has
	})
}

// C36: while b is cut off a writes; b drops what it had, also what it has read meanwhile.
func TestC36CutOff(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		a, b := f.join(t), f.join(t)
		settle()
		const keys = 100
		for i := range keys {
			a.mustSet(t, fmt.Sprint(i), "1")
		}
		synctest.Wait()
		for i := range keys {
			b.wantFrom(t, fmt.Sprint(i), "1", "l3")
		}
		b.bus.Cut()
		synctest.Wait()
		for i := range keys {
			b.wantFrom(t, fmt.Sprint(i), "1", "l3") // dropped when the loss was noticed
		}
		for i := range keys {
			a.mustSet(t, fmt.Sprint(i), "2")
		}
		b.wantFrom(t, "0", "1", "l1")
		time.Sleep(8 * time.Second) // the clamp, and a step of the watch
		b.wantFrom(t, "0", "2", "l3")
		a.mustSet(t, "1", "3")
		b.bus.Restore()
		synctest.Wait()
		b.wantFrom(t, "1", "3", "l3")
		for i := 2; i < keys; i++ {
			b.wantFrom(t, fmt.Sprint(i), "2", "l3")
		}
		if s := b.Stats().Bus; s.Gaps != 1 || !s.Connected {
			t.Errorf("stats: %+v", s)
		}
	})
}

// A publisher that is cut off tries again, the newest of each key only, and all at once
// where there are too many.
func TestC36APublisherCutOff(t *testing.T) {
	for _, many := range []bool{false, true} {
		virtual(t, fmt.Sprintf("too many %v", many), func(t *testing.T) {
			f := newFleet()
			f.edit = func(o *coordinator.Options[string, string]) { o.BusOptions.Queue = 10 }
			a, b := f.join(t), f.join(t)
			settle()
			n := 5
			if many {
				n = 50
			}
			for i := range n {
				a.mustSet(t, fmt.Sprint(i), "1")
				synctest.Wait()
				b.wantFrom(t, fmt.Sprint(i), "1", "l3")
			}
			a.bus.Cut()
			for range 3 {
				for i := range n {
					a.mustSet(t, fmt.Sprint(i), "2")
				}
			}
			synctest.Wait()
			if s := a.Stats().Bus; s.Waiting > 20 || s.Failures == 0 || (s.Overflows > 0) != many || s.Connected {
				t.Errorf("stats: %+v", s)
			}
			a.bus.Restore()
			synctest.Wait()
			for i := range n {
				b.wantFrom(t, fmt.Sprint(i), "2", "l3")
			}
			if s := a.Stats().Bus; s.Waiting != 0 {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

// A process that is killed may have written what it did not announce; one that is closed
// has not.
func TestBusAPublisherGoes(t *testing.T) {
	for _, killed := range []bool{true, false} {
		virtual(t, fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			f := newFleet()
			a, b := f.join(t), f.join(t)
			settle()
			a.mustSet(t, "k", "1")
			synctest.Wait()
			b.wantFrom(t, "k", "1", "l3")
			if killed {
				f.hub.Meddle(lossy(func() bool { return true }))
				a.mustSet(t, "k", "2")
				synctest.Wait()
				_ = a.bus.Close()
				synctest.Wait()
				f.hub.Meddle(nil)
			} else if err := a.Close(ctx); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			s := b.Stats().Bus
			if killed {
				b.wantFrom(t, "k", "2", "l3")
			} else {
				b.wantFrom(t, "k", "1", "l1")
			}
			if (s.Gaps == 1) != killed || s.Publishers != 0 {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

// A shared tier that could not be told is announced again when it has been.
func TestBusAfterARepeatedWrite(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		a, b := f.join(t), f.join(t)
		settle()
		a.mustSet(t, "k", "1")
		synctest.Wait()
		a.l3.Inject(storetest.Fail(errors.New("down")))
		if err := a.Set(ctx, "k", "2"); err == nil {
			t.Error("Set with a tier down: no error")
		}
		b.wantFrom(t, "k", "1", "l3") // all that it can know
		a.l3.Heal()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		b.wantFrom(t, "k", "2", "l3")
	})
}

// Keys that are no strings find their way; what cannot be told is refused.
func TestBusKeys(t *testing.T) {
	virtual(t, "structs", func(t *testing.T) {
		hub := storetest.NewBusHub()
		open := func() *coordinator.Cache[structKey, int] {
			return newCache(t, coordinator.Options[structKey, int]{
				Tiers: []tier.Tier[structKey, int]{{Name: "l1", Store: storetest.NewMap[structKey, int]()}}, Bus: hub.Open()})
		}
		a, b := open(), open()
		settle()
		one, two := structKey{1, "a"}, structKey{-2, "a"}
		_ = b.Set(ctx, one, 1)
		_ = b.Set(ctx, two, 1)
		synctest.Wait()
		_ = a.Set(ctx, one, 2)
		synctest.Wait()
		if _, err := b.Get(ctx, one); !errors.Is(err, coordinator.ErrMiss) {
			t.Errorf("the key that was written: %v", err)
		}
		wantGet(t, b, two, 1)
	})
	virtual(t, "of another type", func(t *testing.T) {
		hub := storetest.NewBusHub()
		a := newCache(t, coordinator.Options[int, int]{Tiers: []tier.Tier[int, int]{{Name: "l1", Store: storetest.NewMap[int, int]()}}, Bus: hub.Open()})
		b := newCache(t, coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")}, Bus: hub.Open()})
		settle()
		_ = b.Set(ctx, "1", "old")
		_ = a.Set(ctx, 1, 2)
		synctest.Wait()
		if _, err := b.Get(ctx, "1"); !errors.Is(err, coordinator.ErrMiss) {
			t.Errorf("got %v, want all dropped", err)
		}
	})
	virtual(t, "too long", func(t *testing.T) {
		f := newFleet()
		a, b := f.join(t), f.join(t)
		settle()
		long := fmt.Sprintf("%05000d", 1)
		a.mustSet(t, long, "1")
		synctest.Wait()
		b.wantFrom(t, long, "1", "l3")
		a.mustSet(t, long, "2")
		synctest.Wait()
		b.wantFrom(t, long, "2", "l3")
	})
	_, err := coordinator.New(coordinator.Options[any, int]{
		Tiers:    []tier.Tier[any, int]{{Name: "l1", Store: storetest.NewMap[any, int]()}},
		Lifetime: policy.Lifetime{TTL: time.Minute}, Bus: storetest.NewBusHub().Open(), BusOptions: coordinator.BusOptions{Queue: -1}})
	if !errors.Is(err, tier.ErrBadKey) {
		t.Errorf("interfaces as keys: %v", err)
	}
}

// badBus fails in whatever way.
type badBus struct {
	publish   func(ctx context.Context) error
	subscribe error
	h         tier.BusHandler
}

func (b *badBus) Publish(ctx context.Context, _ string, _ []byte) error { return b.publish(ctx) }

func (b *badBus) Subscribe(_ string, h tier.BusHandler) (func(), error) {
	b.h = h
	return func() {}, b.subscribe
}

func (b *badBus) Close() error { return nil }

// A bus that hangs, panics or refuses delays no writer, and Close ends in time.
func TestBusThatFails(t *testing.T) {
	for name, publish := range map[string]func(context.Context) error{
		"hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"panics":  func(context.Context) error { panic("bus") },
		"refuses": func(context.Context) error { return errors.New("no") },
	} {
		virtual(t, name, func(t *testing.T) {
			c, err := coordinator.New(coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")},
				Lifetime: policy.Lifetime{TTL: time.Minute}, Logger: quiet, Bus: &badBus{publish: publish}})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			for i := range 10_000 {
				if err := c.Set(ctx, fmt.Sprint(i), "v"); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(start); took > 0 {
				t.Errorf("10,000 Sets took %v", took)
			}
			time.Sleep(time.Minute)
			if s := c.Stats().Bus; s.Waiting > 4096+256 || s.Failures < 10 || s.Overflows == 0 {
				t.Errorf("stats: %+v", s)
			}
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			start = time.Now()
			if err := c.Close(ctx); err == nil {
				t.Error("Close: no error, though keys were not announced")
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("Close took %v", took)
			}
		})
	}
	down := errors.New("down")
	_, err := coordinator.New(coordinator.Options[string, string]{Tiers: []tier.Tier[string, string]{memory[string]("l1")},
		Lifetime: policy.Lifetime{TTL: time.Minute}, Bus: &badBus{subscribe: down}})
	wantError(t, "New", err, down)
}

// refusingBus fails to publish a few times, as over connections that have died unnoticed.
type refusingBus struct {
	tier.Bus
	left atomic.Int64
}

func (b *refusingBus) Publish(ctx context.Context, channel string, message []byte) error {
	if b.left.Add(-1) >= 0 {
		return errors.New("connection reset by peer")
	}
	return b.Bus.Publish(ctx, channel, message)
}

// What is written last is announced by Close also where the bus fails once or twice.
func TestBusCloseTriesAgain(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		b := f.join(t)
		bus := &refusingBus{Bus: f.hub.Open()}
		f.edit = func(o *coordinator.Options[string, string]) { o.Bus = bus }
		a := f.join(t)
		settle()
		a.mustSet(t, "k", "1")
		synctest.Wait()
		b.wantFrom(t, "k", "1", "l3")
		bus.left.Store(2)
		a.mustSet(t, "k", "2")
		if err := a.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		synctest.Wait()
		b.wantFrom(t, "k", "2", "l3")
	})
}

// Random histories of several processes, a bus that loses, doubles and is cut, and a
// shared tier that stalls: no process sees less than its own last write, and at rest,
// when what was lost has been noticed, all see the last write of each key.
func TestBusHistory(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	for seed := range uint64(seeds) {
		virtual(t, fmt.Sprintf("seed %d", seed), func(t *testing.T) { busHistory(t, seed) })
	}
}

// clearAlone clears the cache, unless somebody writes. As a Clear takes tombstones away, it
// waits until loads have ended that began before the last Delete.
func clearAlone(p *process, writers []sync.Mutex) {
	for i := range writers {
		if !writers[i].TryLock() {
			return
		}
		defer writers[i].Unlock()
	}
	time.Sleep(200 * time.Millisecond)
	_ = p.Clear(ctx)
}

func busHistory(t *testing.T, seed uint64) {
	const processes, keys, steps = 3, 5, 120
	var rmu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 36))
	random := func(n int) int {
		rmu.Lock()
		defer rmu.Unlock()
		return rng.IntN(n)
	}
	f := newFleet()
	var source [keys]atomic.Int64 // the origin's versions
	f.edit = func(o *coordinator.Options[string, string]) {
		o.Load = func(ctx context.Context, key string) (string, error) {
			var k int
			_, _ = fmt.Sscan(key, &k)
			v := source[k].Load()
			return fmt.Sprint(v), sleep(ctx, time.Duration(random(40))*time.Millisecond)
		}
		if seed%3 == 0 {
			o.Tiers = o.Tiers[:2] // the bus alone
		}
		if seed%4 == 1 {
			o.BusOptions.Queue = 2
		}
	}
	fleet := make([]*process, processes)
	for i := range fleet {
		fleet[i] = f.join(t)
		fleet[i].l3.Inject(func(ctx context.Context, _ storetest.Call, do func() error) error {
			if err := sleep(ctx, time.Duration(random(20))*time.Millisecond); err != nil {
				return err
			}
			return do()
		})
	}
	f.hub.Meddle(func(_ string, m []byte) [][]byte {
		switch random(12) {
		case 0:
			return nil
		case 1:
			return [][]byte{m, m}
		case 2:
			return [][]byte{m[:len(m)/2]}
		default:
			return [][]byte{m}
		}
	})
	var writers [keys]sync.Mutex
	done := make(chan struct{})
	go func() { // cuts
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Duration(random(2000)) * time.Millisecond):
			}
			p := fleet[random(processes)]
			p.bus.Cut()
			time.Sleep(time.Duration(random(3000)) * time.Millisecond)
			p.bus.Restore()
		}
	}()
	many(processes*3, func(i int) {
		p := fleet[i%processes]
		for range steps {
			k := random(keys)
			key := fmt.Sprint(k)
			switch op := random(10); {
			case op < 7:
				got, err := p.Get(ctx, key)
				var v int64
				if _, scanErr := fmt.Sscan(got, &v); err != nil || scanErr != nil {
					t.Errorf("Get(%s): %q, %v", key, got, err)
				}
			case op < 9:
				if !writers[k].TryLock() { // a mutex that is waited for stops virtual time
					break
				}
				v := source[k].Add(1)
				var err error
				if op == 7 {
					err = p.Set(ctx, key, fmt.Sprint(v))
				} else {
					err = p.Delete(ctx, key)
				}
				if got, getErr := p.Get(ctx, key); err != nil || getErr != nil || got != fmt.Sprint(v) {
					t.Errorf("Get(%s) after the process's own write of %d: %q, %v, %v", key, v, got, err, getErr)
				}
				writers[k].Unlock()
			default:
				if random(20) == 0 {
					clearAlone(p, writers[:])
				}
			}
			time.Sleep(time.Duration(random(200)) * time.Millisecond)
		}
	})
	close(done)
	time.Sleep(10 * time.Second)
	f.hub.Restore()
	f.hub.Meddle(nil)
	time.Sleep(10 * time.Second) // heartbeats
	synctest.Wait()
	for i, p := range fleet {
		for k := range keys {
			got, err := p.Get(ctx, fmt.Sprint(k))
			if want := fmt.Sprint(source[k].Load()); err != nil || got != want {
				t.Errorf("process %d, key %d at rest: %q, %v, want %q", i, k, got, err, want)
			}
		}
		if s := p.Stats(); s.Keys != 0 || s.Bus.Waiting != 0 || !s.Bus.Connected || s.Bus.Publishers != processes-1 {
			t.Errorf("at rest: %+v", s)
		}
	}
}
