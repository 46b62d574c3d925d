package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// flaky is a remote store that does what a test says.
type flaky struct {
	*hooked[string]
	does atomic.Pointer[func(ctx context.Context) error]
}

func newFlaky() *flaky {
	f := new(flaky)
	f.becomes(well)
	f.hooked = hook[string](storetest.NewMap[string, string](), func(ctx context.Context, _, _ string) error { return (*f.does.Load())(ctx) })
	return f
}

func (f *flaky) becomes(does func(context.Context) error) { f.does.Store(&does) }

func refused(context.Context) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func well(context.Context) error { return nil }

func (f *flaky) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.ops)
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func overFlaky(t *testing.T, f *flaky, b tier.Breaker) *coordinator.Cache[string, string] {
	return newCache(t, coordinator.Options[string, string]{
		Tiers:    []tier.Tier[string, string]{{Name: "remote", Store: f, Timeout: 50 * time.Millisecond, Breaker: b}},
		Lifetime: policy.Lifetime{TTL: time.Minute},
		Load:     func(_ context.Context, key string) (string, error) { return "value of " + key, nil },
	})
}

// A tier that hangs costs its time limit twice, then nothing; after a second one call
// finds out whether it is back (S1, C47).
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky()
		c := overFlaky(t, f, tier.Breaker{})
		f.becomes(hang)
		start := time.Now()
		for i := range 40 {
			wantGet(t, c, fmt.Sprint("key ", i), fmt.Sprint("value of key ", i))
		}
		if got := time.Since(start); got != 100*time.Millisecond {
			t.Errorf("40 reads of a tier that hangs took %v, want two time limits", got)
		}
		s := c.Stats().Tiers[0]
		if s.Breaker != "open" || s.Skipped != 78 || s.Errors != 2 || s.Failures["timeout"] != 2 {
			t.Errorf("breaker %s, %d skipped, %d errors, %v; want open, 78, 2 of which are timeouts", s.Breaker, s.Skipped, s.Errors, s.Failures)
		}

		time.Sleep(time.Second - time.Since(start)) // still down for the first probe
		before, at := f.calls(), time.Now()
		time.Sleep(150 * time.Millisecond)
		for range 10 {
			wantGet(t, c, "key", "value of key")
		}
		if got := f.calls() - before; got < 1 || got > 2 || time.Since(at) > 300*time.Millisecond {
			t.Errorf("%d calls while half open, in %v, want one probe", got, time.Since(at))
		}

		f.becomes(well)
		time.Sleep(time.Second + 50*time.Millisecond) // a probe may still hang
		synctest.Wait()
		wantGet(t, c, "later", "value of later")
		if s := c.Stats().Tiers[0]; s.Breaker != "closed" {
			t.Errorf("after the tier came back: %s", s.Breaker)
		}
		// What could not be written comes after, at once.
		synctest.Wait()
		if got := c.Stats().Tiers[0].Pending; got != 0 {
			t.Errorf("%d writes still wait although the tier is back", got)
		}
	})
}

// refusal is a reply of a server.
type refusal struct{ outage bool }

func (refusal) Error() string       { return "OOM command not allowed" }
func (refusal) FailureKind() string { return "OOM" }
func (r refusal) Outage() bool      { return r.outage }

// What opens a breaker is an outage, and only one that the tier is to blame for.
func TestBreakerCountsOutages(t *testing.T) {
	for name, test := range map[string]struct {
		fail func(context.Context) error
		open bool
		kind string
	}{
		"refused connection": {refused, true, "connection"},
		"anything else":      {func(context.Context) error { return errors.New("this key will not do") }, false, "other"},
		"a reply":            {func(context.Context) error { return refusal{} }, false, "OOM"},
		"an outage's reply":  {func(context.Context) error { return fmt.Errorf("get: %w", refusal{true}) }, true, "OOM"},
		"unreadable":         {func(context.Context) error { return &tier.UnreadableError{Reason: "magic"} }, false, ""},
		"too large":          {func(context.Context) error { return tier.ErrTooLarge }, false, "too large"},
		"a panic":            {func(context.Context) error { panic("store") }, false, ""},
	} {
		virtual(t, name, func(t *testing.T) {
			f := newFlaky()
			c := overFlaky(t, f, tier.Breaker{})
			f.becomes(test.fail)
			for i := range 5 {
				_, _ = c.Get(t.Context(), fmt.Sprint(i))
			}
			s := c.Stats().Tiers[0]
			if want := map[bool]string{true: "open", false: "closed"}[test.open]; s.Breaker != want {
				t.Errorf("breaker %s, want %s", s.Breaker, want)
			}
			if test.kind != "" && s.Failures[test.kind] == 0 {
				t.Errorf("failures %v, want some of kind %q", s.Failures, test.kind)
			}
			f.becomes(well)
		})
	}
	virtual(t, "off", func(t *testing.T) {
		f := newFlaky()
		c := overFlaky(t, f, tier.Breaker{Off: true})
		f.becomes(refused)
		for i := range 5 {
			_, _ = c.Get(t.Context(), fmt.Sprint(i))
		}
		if s := c.Stats().Tiers[0]; s.Skipped != 0 || s.Breaker != "" {
			t.Errorf("breaker %q, %d skipped, want none", s.Breaker, s.Skipped)
		}
		f.becomes(well)
	})
}

// A part that rests was not asked: that neither makes good what others failed at, nor closes
// a breaker, nor opens one, and as the probe it keeps nobody from being the next.
func TestAPartThatRestsSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky()
		c := overFlaky(t, f, tier.Breaker{})
		state := func() string { return c.Stats().Tiers[0].Breaker }
		ask := func(does func(context.Context) error, key string) {
			f.becomes(does)
			_ = c.Delete(t.Context(), key)
		}
		rests := func(context.Context) error { return resting{errDown} }
		for i := range 10 {
			ask(rests, fmt.Sprint("resting ", i))
		}
		if got := state(); got != "closed" {
			t.Errorf("with a part that rests: %s, want closed", got)
		}
		ask(refused, "a")
		ask(rests, "resting")
		ask(refused, "b")
		if got := state(); got != "open" {
			t.Errorf("after two outages with a part that rests between them: %s, want open", got)
		}
		f.becomes(rests) // for what is tried again too
		time.Sleep(1500 * time.Millisecond)
		ask(rests, "resting")
		if got := state(); got == "closed" {
			t.Error("closed by a part that was not asked")
		}
		ask(well, "c")
		if got := state(); got != "closed" {
			t.Errorf("after an answer: %s, want closed", got)
		}
	})
}

// A writer who leaves says nothing of the tier, and as the probe keeps nobody from
// being the next.
func TestBreakerAndWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky()
		c := overFlaky(t, f, tier.Breaker{})
		leave := func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			_ = c.Set(ctx, "key", "value")
		}
		f.becomes(hang)
		for range 5 {
			leave()
			time.Sleep(time.Second) // the writes that are tried again find the tier well
			f.becomes(well)
			time.Sleep(time.Minute)
			f.becomes(hang)
		}
		if s := c.Stats().Tiers[0]; s.Errors == 0 {
			t.Errorf("no write failed: %+v", s)
		}
		f.becomes(refused)
		for i := range 3 {
			_, _ = c.Get(t.Context(), fmt.Sprint(i))
		}
		if s := c.Stats().Tiers[0].Breaker; s != "open" {
			t.Fatalf("breaker %s, want open", s)
		}
		f.becomes(hang)
		time.Sleep(1100 * time.Millisecond)
		leave() // may be the probe
		f.becomes(well)
		time.Sleep(2 * time.Second)
		wantGet(t, c, "another", "value of another")
		time.Sleep(time.Minute)
		wantGet(t, c, "another", "value of another")
		if s := c.Stats().Tiers[0].Breaker; s != "closed" {
			t.Errorf("breaker %s a minute after the tier came back, want closed", s)
		}
	})
}

// A server that is black-holed costs two time limits in all; what the tiers in memory
// hold is read as before, and it is used again once it is back.
func TestBlackHole(t *testing.T) {
	eachRemote(t, func(t *testing.T, r remote) {
		proxy := servers.Proxy(t, r.start(t).Addr())
		f := newFull(t, r.open(t, proxy.Addr()), policy.Lifetime{TTL: time.Minute})
		wantGet(t, f.Cache, "held", "value of held")
		proxy.BlackHole()
		for i := range 40 {
			key := fmt.Sprint("key ", i)
			wantGet(t, f.Cache, key, "value of "+key)
			if res, err := f.Lookup(ctx, "held"); err != nil || res.Tier != "l1" {
				t.Fatalf("what l1 holds: %+v, %v", res, err)
			}
		}
		s := f.Stats().Tiers[2]
		if s.Failures["timeout"] > 2 || s.Skipped < 70 {
			t.Errorf("failures %v, %d skipped; want at most two timeouts for 40 reads", s.Failures, s.Skipped)
		}
		proxy.Restore()
		deadline := time.Now().Add(30 * time.Second)
		for i := 0; f.Stats().Tiers[2].Breaker != "closed" || f.Stats().Tiers[2].Pending > 0; i++ {
			if time.Now().After(deadline) {
				t.Fatalf("not in use again: %+v", f.Stats().Tiers[2])
			}
			_, _ = f.Get(ctx, fmt.Sprint("later ", i))
			time.Sleep(10 * time.Millisecond)
		}
		other := newFull(t, r.open(t, proxy.Addr()), policy.Lifetime{TTL: time.Minute})
		if res, err := other.Lookup(ctx, "key 39"); err != nil || res.Tier != "l3" {
			t.Errorf("what could not be written while it was away: %+v, %v, want it from l3", res, err)
		}
	})
}
