package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
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

// newTracked returns a fleet whose processes are told by the shared tier, and by no bus.
func newTracked(edits ...func(*coordinator.Options[string, string])) *fleet {
	f := newFleet()
	f.edit = func(o *coordinator.Options[string, string]) {
		o.Bus, o.Track = nil, true
		for _, edit := range edits {
			edit(o)
		}
	}
	return f
}

// reads counts the process's reads of the shared tier, without looks at heads.
func (p *process) reads() (n int) {
	for _, c := range p.l3.Calls() {
		if c.Op == storetest.Get || c.Op == storetest.GetMany {
			n++
		}
	}
	return n
}

func TestTrackingDropsWhatOthersWrite(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newTracked()
		a, b := f.join(t), f.join(t)
		foreign := f.l3.Another() // a program that knows nothing of us
		for name, write := range map[string]func() error{
			"Set by a cache":    func() error { return a.Set(ctx, "k", "2") },
			"Delete by a cache": func() error { return a.Delete(ctx, "k") },
			"Expire by a cache": func() error { return a.Expire(ctx, "k") },
			"Clear by a cache":  func() error { return a.Clear(ctx) },
			"a foreign delete":  func() error { return foreign.Delete(ctx, "k") },
			"a foreign clear":   func() error { return foreign.Clear(ctx) },
			"a foreign value":   func() error { return foreign.Set(ctx, "k", []byte("what is this?"), time.Hour) },
		} {
			a.mustSet(t, "k", "1")
			a.mustSet(t, "other", "1")
			synctest.Wait()
			a.wantFrom(t, "k", "1", "l1")
			b.wantFrom(t, "k", "1", "l3")
			b.wantFrom(t, "k", "1", "l1")
			b.wantFrom(t, "other", "1", "l3")
			if err := write(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait()
			want, from := "loaded", ""
			if name == "Set by a cache" {
				want, from = "2", "l3"
			}
			b.wantFrom(t, "k", want, from)
			synctest.Wait()
			b.wantFrom(t, "k", want, "l1")
			if from == "" { // b has loaded it
				a.wantFrom(t, "k", want, "l3")
			}
			if !strings.Contains(name, "lear") {
				b.wantFrom(t, "other", "1", "l1")
			}
		}
		if s := b.Stats().Tracking; !s.Connected || s.Changes == 0 || s.All == 0 || s.Applied == 0 || s.Gaps != 0 || s.Doubtful != 0 {
			t.Errorf("stats: %+v", s)
		}
		if s := b.Stats().Bus; s != (coordinator.BusStats{}) {
			t.Errorf("bus stats without a bus: %+v", s)
		}
	})
}

// What a process writes itself it is told of like all others.
func TestTrackingKeepsOwnWrites(t *testing.T) {
	for name, lease := range map[string]coordinator.Lease{"": {}, "with a lease": {Life: time.Second}} {
		virtual(t, name, func(t *testing.T) {
			f := newTracked(func(o *coordinator.Options[string, string]) { o.Lease = lease })
			a := f.join(t)
			a.mustSet(t, "set", "1")
			a.wantFrom(t, "load", "loaded", "")
			for range 10 {
				a.mustSet(t, "often", "1")
			}
			before := a.reads()
			for range 3 {
				synctest.Wait()
				for _, k := range []string{"set", "load", "often"} {
					if r, err := a.Lookup(ctx, k); err != nil || r.Tier != "l1" {
						t.Errorf("%s: from %q, %v, want l1", k, r.Tier, err)
					}
				}
			}
			if got := a.reads(); got != before {
				t.Errorf("%d reads of the shared tier", got-before)
			}
			if s := a.Stats().Tracking; s.Own == 0 || s.Looks == 0 || s.Applied != 0 {
				t.Errorf("stats: %+v", s)
			}
			wantCalls(t, &a.origin, 1)
		})
	}
}

// answersLate makes calls whose answers take a while.
func answersLate(d time.Duration) storetest.Fault {
	return func(ctx context.Context, _ storetest.Call, do func() error) error {
		err := do()
		_ = sleep(ctx, d)
		return err
	}
}

// A change is told before the write that made it is answered; others write in between.
func TestTrackingOwnWriteRacesAnother(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newTracked()
		a, b := f.join(t), f.join(t)
		a.mustSet(t, "k", "0")
		synctest.Wait()
		a.l3.Inject(answersLate(100*time.Millisecond), storetest.SetIf)
		done := make(chan struct{})
		go func() { defer close(done); a.mustSet(t, "k", "a's") }()
		time.Sleep(10 * time.Millisecond)
		<-done
		synctest.Wait()
		a.wantFrom(t, "k", "a's", "l1")

		go func() { a.mustSet(t, "k", "a's again") }()
		time.Sleep(10 * time.Millisecond)
		b.mustSet(t, "k", "b's")
		time.Sleep(time.Second)
		a.l3.Heal()
		for _, p := range []*process{a, b} {
			if r, err := p.Lookup(ctx, "k"); err != nil || r.Value != "b's" {
				t.Errorf("got %q from %q, %v, want b's", r.Value, r.Tier, err)
			}
		}
	})
}

// W1: what was read from below before others wrote is not stored above after that was
// told, also not where the process has written the key itself not long ago.
func TestTrackingFencesAFillUnderWay(t *testing.T) {
	for _, wrote := range []bool{false, true} {
		virtual(t, fmt.Sprint("it wrote the key: ", wrote), func(t *testing.T) {
			f := newTracked()
			a, b := f.join(t), f.join(t)
			a.mustSet(t, "k", "1")
			synctest.Wait()
			if wrote {
				b.mustSet(t, "k", "1")
				a.mustSet(t, "k", "1")
				synctest.Wait()
			}
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
}

// A load that others write over is not stored; one that only they wait for is.
func TestTrackingFencesALoadUnderWay(t *testing.T) {
	for _, life := range []time.Duration{0, time.Second} {
		virtual(t, fmt.Sprint("lease ", life), func(t *testing.T) {
			f := newTracked(func(o *coordinator.Options[string, string]) { o.Lease.Life = life })
			a := f.join(t)
			b := f.join(t)
			began := make(chan struct{})
			go func() {
				_, _ = b.GetOrLoad(ctx, "k", func(context.Context, string) (string, error) {
					close(began)
					time.Sleep(100 * time.Millisecond)
					return "old", nil
				})
			}()
			<-began
			synctest.Wait()
			a.mustSet(t, "k", "new")
			time.Sleep(time.Second)
			b.wantFrom(t, "k", "new", "l3")
			if s := b.Stats(); s.Fenced == 0 {
				t.Errorf("nothing was fenced: %+v", s)
			}
		})
	}
}

// P1: the marks of other processes' leases are changes too. Who takes the place of a
// holder that brought nothing stores what it loads.
func TestTrackingWithALease(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newTracked(func(o *coordinator.Options[string, string]) { o.Lease.Life = time.Second })
		a, b := f.join(t), f.join(t)
		var done sync.WaitGroup
		done.Go(func() {
			_, err := a.GetOrLoad(ctx, "k", func(context.Context, string) (string, error) {
				time.Sleep(3 * time.Second) // renews its mark many times
				return "", errors.New("no answer")
			})
			if err == nil {
				t.Error("the holder's load did not fail")
			}
		})
		time.Sleep(10 * time.Millisecond)
		const callers = 8
		for i := range callers {
			done.Go(func() {
				time.Sleep(time.Duration(i) * 300 * time.Millisecond)
				if got, err := b.Get(ctx, "k"); err != nil || got != "loaded" {
					t.Errorf("Get: %q, %v", got, err)
				}
			})
		}
		done.Wait()
		synctest.Wait()
		wantCalls(t, &b.origin, 1)
		b.wantFrom(t, "k", "loaded", "l1")
		a.wantFrom(t, "k", "loaded", "l3")

		// Who only waited has it in memory with the next read but one.
		done.Go(func() { b.wantFrom(t, "other", "loaded", "") })
		time.Sleep(time.Millisecond)
		_, _ = a.Get(ctx, "other")
		done.Wait()
		synctest.Wait()
		_, _ = a.Get(ctx, "other")
		a.wantFrom(t, "other", "loaded", "l1")
		wantCalls(t, &a.origin, 0)
	})
}

// A tier that cannot be looked at, or too many keys to look at, cost memory its entries,
// and nobody an old value.
func TestTrackingWithoutALook(t *testing.T) {
	virtual(t, "the look fails", func(t *testing.T) {
		f := newTracked()
		a := f.join(t)
		a.l3.Inject(storetest.Fail(errDown), storetest.Heads)
		a.mustSet(t, "k", "1")
		synctest.Wait()
		a.wantFrom(t, "k", "1", "l3")
	})
	virtual(t, "the look hangs", func(t *testing.T) {
		f := newTracked()
		a := f.join(t)
		a.l3.Inject(storetest.Slow(time.Hour), storetest.Heads)
		a.mustSet(t, "k", "1")
		synctest.Wait()
		a.wantFrom(t, "k", "1", "l1")
		if err := f.l3.Delete(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		a.wantFrom(t, "k", "loaded", "")
	})
	virtual(t, "no room", func(t *testing.T) {
		f := newTracked(func(o *coordinator.Options[string, string]) { o.BusOptions.Queue = 1 })
		a := f.join(t)
		a.l3.Inject(storetest.Slow(100*time.Millisecond), storetest.Heads)
		for i := range 10 {
			a.mustSet(t, fmt.Sprint(i), "1")
		}
		time.Sleep(time.Second)
		if s := a.Stats().Tracking; s.Overflows == 0 || s.Looks > 10 || s.Doubtful != 0 {
			t.Errorf("stats: %+v", s)
		}
		for i := range 10 {
			if got, err := a.Get(ctx, fmt.Sprint(i)); err != nil || got != "1" {
				t.Errorf("Get: %q, %v", got, err)
			}
		}
	})
}

// C36: what is missed while the tracking is lost is not kept.
func TestC36TrackingCutOff(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		f.edit = func(o *coordinator.Options[string, string]) { o.Bus, o.Track = nil, true }
		a := f.join(t)
		own := f.l3.Another()
		f.edit = func(o *coordinator.Options[string, string]) {
			o.Bus, o.Track = nil, true
			o.Tiers[2].Store = tier.Encode[string, string](own, codec.JSON[string]())
		}
		b := f.join(t)
		for _, k := range []string{"k", "other"} {
			a.mustSet(t, k, "1")
			synctest.Wait()
			b.wantFrom(t, k, "1", "l3")
		}
		own.CutTracking()
		synctest.Wait()
		b.wantFrom(t, "k", "1", "l3") // dropped when the loss was noticed
		a.mustSet(t, "k", "2")
		b.wantFrom(t, "k", "1", "l1")
		time.Sleep(8 * time.Second) // the clamp, and a step of the watch
		b.wantFrom(t, "k", "2", "l3")
		a.mustSet(t, "other", "3")
		own.RestoreTracking()
		synctest.Wait()
		b.wantFrom(t, "other", "3", "l3")
		b.wantFrom(t, "k", "2", "l3")
		if s := b.Stats().Tracking; s.Gaps != 1 || !s.Connected || s.Dropped < 3 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// Both kinds of bus at once: what each tells is applied.
func TestTrackingBesideABus(t *testing.T) {
	virtual(t, "", func(t *testing.T) {
		f := newFleet()
		f.edit = func(o *coordinator.Options[string, string]) { o.Track = true }
		a, b := f.join(t), f.join(t)
		settle()
		a.mustSet(t, "k", "1")
		synctest.Wait()
		b.wantFrom(t, "k", "1", "l3")
		a.wantFrom(t, "k", "1", "l1")
		b.bus.Cut()
		synctest.Wait()
		a.mustSet(t, "k", "2")
		synctest.Wait()
		b.wantFrom(t, "k", "2", "l3")
		a.wantFrom(t, "k", "2", "l1")
		b.bus.Restore()
		synctest.Wait()
		b.wantFrom(t, "k", "2", "l3")
		if sb := b.Stats(); !sb.Bus.Connected || !sb.Tracking.Connected || sb.Bus.Applied == 0 || sb.Tracking.Applied == 0 {
			t.Errorf("bus %+v\ntracking %+v", sb.Bus, sb.Tracking)
		}
	})
}

// Whatever is written by whom, and however slowly it is answered: once all is quiet the
// tiers in memory hold nothing but what the shared tier does.
func TestTrackingConverges(t *testing.T) {
	for seed := range uint64(40) {
		virtual(t, fmt.Sprint("seed ", seed), func(t *testing.T) { trackingConverges(t, seed) })
	}
}

func trackingConverges(t *testing.T, seed uint64) {
	const processes, keys, steps = 3, 4, 150
	rng := rand.New(rand.NewPCG(seed, 7))
	f := newTracked(func(o *coordinator.Options[string, string]) {
		o.Lifetime = policy.Lifetime{TTL: time.Hour}
		if seed%2 == 1 {
			o.Lease.Life = 200 * time.Millisecond
		}
	})
	fleet := make([]*process, processes)
	for i := range fleet {
		fleet[i] = f.join(t)
		var mu sync.Mutex
		own := rand.New(rand.NewPCG(seed, uint64(i)))
		fleet[i].l3.Inject(func(ctx context.Context, _ storetest.Call, do func() error) error {
			mu.Lock()
			before, after := time.Duration(own.IntN(5)), time.Duration(own.IntN(5))
			mu.Unlock()
			if err := sleep(ctx, before*time.Millisecond); err != nil {
				return err
			}
			err := do()
			_ = sleep(ctx, after*time.Millisecond)
			return err
		})
	}
	version := 0
	var running sync.WaitGroup
	for range steps {
		time.Sleep(time.Duration(rng.IntN(4)) * time.Millisecond)
		p, key := fleet[rng.IntN(processes)], fmt.Sprint(rng.IntN(keys))
		version++
		value := fmt.Sprint("version ", version)
		switch op := rng.IntN(10); op {
		case 0, 1:
			running.Go(func() { _ = p.Set(ctx, key, value) })
		case 2:
			running.Go(func() { _ = p.Delete(ctx, key) })
		case 3:
			_ = f.l3.Delete(ctx, key)
		case 4:
			running.Go(func() { _ = p.Expire(ctx, key) })
		default:
			running.Go(func() {
				_, _ = p.GetOrLoad(ctx, key, func(context.Context, string) (string, error) {
					time.Sleep(3 * time.Millisecond)
					return value, nil
				})
			})
		}
	}
	running.Wait()
	time.Sleep(time.Second)
	synctest.Wait()
	shared := tier.Encode[string, string](f.l3, codec.JSON[string]())
	for i, p := range fleet {
		p.l3.Heal()
		for k := range keys {
			key := fmt.Sprint(k)
			e, err := shared.Get(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.Peek(ctx, key)
			switch {
			case e == nil && err == nil:
				t.Errorf("process %d has %q under %s, the shared tier nothing", i, r.Value, key)
			case e != nil && (err != nil || r.Value != e.Value()):
				t.Errorf("process %d has %q from %q under %s, %v; the shared tier %q", i, r.Value, r.Tier, key, err, e.Value())
			}
		}
	}
}

func TestTrackingOptions(t *testing.T) {
	own := func(k string) string { return k }
	for name, c := range map[string]struct {
		tiers []tier.Tier[string, string]
		want  string
	}{
		"no shared tier": {[]tier.Tier[string, string]{memory[string]("l1")}, "no shared tier"},
		"one that cannot": {[]tier.Tier[string, string]{{Name: "l3", Store: tier.Encode[string, string](onlyBytes{storetest.NewMapBytes()}, codec.JSON[string]())}},
			`tier "l3", the first shared one, cannot tell`},
		"keys that cannot be told": {[]tier.Tier[string, string]{{Name: "l3", Store: tier.EncodeWith[string, string](storetest.NewMapBytes(), codec.JSON[string](),
			tier.EncodeOptions[string]{Key: own})}}, "ParseKey"},
	} {
		_, err := coordinator.New(coordinator.Options[string, string]{Tiers: c.tiers, Lifetime: policy.Lifetime{TTL: time.Hour}, Track: true})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// onlyBytes is a byte store without capabilities.
type onlyBytes struct{ tier.Bytes }
