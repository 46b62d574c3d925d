package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

var ctx = context.Background()

// Without a fault the wrappers pass the suite, with what the wrapped store can do.
func TestFaultyPassesThrough(t *testing.T) {
	storetest.TestBytesWith(t, func(testing.TB) tier.Bytes { return storetest.NewFaultyBytes(storetest.NewMapBytes()) },
		storetest.BytesOptions{Virtual: true})
	storetest.TestStoreWith(t, func(testing.TB) tier.Store[string, string] {
		return storetest.NewFaulty[string, string](tier.Encode[string](storetest.NewMapBytes(), codec.String()))
	}, storetest.StoreOptions[string]{Virtual: true})

	f := storetest.NewFaulty[string, int](storetest.NewMap[string, int]())
	for c, want := range map[tier.Capability]bool{tier.CanBatch: false, tier.CanSwap: false, tier.CanClear: true, tier.CanMeasure: true} {
		if got := f.Can(c); got != want {
			t.Errorf("around a Map: Can(%d) = %v, want %v", c, got, want)
		}
	}
	if !tier.IsLocal[string, int](f) {
		t.Error("around a local store: not local")
	}
	f.SetRemote()
	if tier.IsLocal[string, int](f) {
		t.Error("after SetRemote: local")
	}
	if _, err := f.GetMany(ctx, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("GetMany around a store without it: got error %v", err)
	}
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaultyBytes(storetest.NewMapBytes())
		defer func() { _ = f.Close() }()
		broken := errors.New("broken")
		set := func(value string) error { return f.Set(ctx, "key", []byte(value), tier.Forever) }
		get := func() string {
			t.Helper()
			v, err := f.Get(ctx, "key")
			if err != nil {
				t.Fatalf("Get: %v", err)
			}
			return string(v)
		}

		f.Inject(storetest.Times(2, storetest.Fail(broken)), storetest.Set)
		for i, want := range []error{broken, broken, nil} {
			if err := set("1"); !errors.Is(err, want) {
				t.Errorf("Set %d of Times(2, Fail): got error %v, want %v", i, err, want)
			}
		}
		f.Inject(storetest.Drop(), storetest.Set)
		if err := set("2"); err != nil || get() != "1" {
			t.Errorf("Drop: got error %v, and value %q", err, get())
		}
		f.Inject(storetest.LoseReply(broken), storetest.Set)
		if err := set("3"); !errors.Is(err, broken) || get() != "3" {
			t.Errorf("LoseReply: got error %v, and value %q", err, get())
		}
		f.Inject(storetest.OnKey("other", storetest.Fail(broken)), storetest.Set)
		if err := set("4"); err != nil {
			t.Errorf("OnKey of another key: %v", err)
		}
		if err := f.Set(ctx, "other", nil, tier.Forever); !errors.Is(err, broken) {
			t.Errorf("OnKey: got error %v, want %v", err, broken)
		}

		start := time.Now()
		f.Inject(storetest.Slow(time.Second), storetest.Get)
		if got := get(); got != "4" || time.Since(start) != time.Second {
			t.Errorf("Slow: got %q after %v", got, time.Since(start))
		}
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		for _, fault := range []storetest.Fault{storetest.Slow(time.Second), storetest.BlackHole()} {
			f.Inject(fault, storetest.Get)
			if v, err := f.Get(short, "key"); v != nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Get = %q, %v, want the context's error", v, err)
			}
		}

		hold := make(chan struct{})
		f.Inject(storetest.Hold(hold))
		var err error
		done := make(chan struct{})
		go func() { defer close(done); err = f.Delete(ctx, "key") }()
		synctest.Wait()
		f.Heal()
		if got := get(); got != "4" {
			t.Errorf("a held Delete has been made: got %q", got)
		}
		close(hold)
		<-done
		if got := get(); got != "" || err != nil {
			t.Errorf("after the Delete: got %q, %v", got, err)
		}

		f.ForgetCalls()
		_ = set("5")
		_, _ = f.GetMany(ctx, []string{"a", "b"})
		_ = f.Clear(ctx)
		if got, want := fmt.Sprint(f.Calls()), "[Set(key) GetMany([a b]) Clear()]"; got != want {
			t.Errorf("Calls = %s, want %s", got, want)
		}
		if f.Count() != 3 || f.Count(storetest.Set, storetest.Clear) != 2 {
			t.Errorf("Count = %d and %d, want 3 and 2", f.Count(), f.Count(storetest.Set, storetest.Clear))
		}
	})
}

func TestMapBytesAnother(t *testing.T) {
	a := storetest.NewMapBytes()
	b := a.Another()
	if err := a.Set(ctx, "key", []byte("value"), tier.Forever); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(ctx, "key"); string(got) != "value" || err != nil {
		t.Errorf("another client gets %q, %v", got, err)
	}
	if got := b.Keys(); !slices.Equal(got, []string{"key"}) {
		t.Errorf("Keys = %q", got)
	}
}
