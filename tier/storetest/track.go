package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
)

// TrackSystem is a server under test that tells of changes.
type TrackSystem struct {
	// Open returns a byte store over the server that is connected apart from others, as
	// from another process. It must be a [tier.BytesTracker]. The suite closes it.
	Open func(t testing.TB) tier.Bytes

	// Cut ends the trackings' connections and keeps them from connecting again, until
	// Restore; writes and reads may fail meanwhile. Nil where the test cannot do that:
	// what must hold then is not checked.
	Cut, Restore func()

	// Within is how long the system may take to tell of a change, or to notice that a
	// connection is lost, or that there is one again. Zero: 10 s.
	Within time.Duration
}

// TestTracker checks what tells of changes. Each check has a system of its own.
func TestTracker(t *testing.T, newSystem func(t testing.TB) TrackSystem) {
	t.Helper()
	runChecks(t, false, newSystem, trackChecks())
}

// TestTrackerVirtual is TestTracker in virtual time, for a system inside the process.
func TestTrackerVirtual(t *testing.T, newSystem func(t testing.TB) TrackSystem) {
	t.Helper()
	runChecks(t, true, newSystem, trackChecks())
}

func trackChecks() []check[func(testing.TB) TrackSystem] {
	with := func(name string, run func(t testing.TB, s TrackSystem)) check[func(testing.TB) TrackSystem] {
		return check[func(testing.TB) TrackSystem]{name, func(t testing.TB, newSystem func(testing.TB) TrackSystem) {
			s := newSystem(t)
			if s.Within == 0 {
				s.Within = 10 * time.Second
			}
			run(t, s)
		}}
	}
	return []check[func(testing.TB) TrackSystem]{
		with("every kind of write is told", trackWrites),
		with("what was told can be read", trackReads),
		with("keys of every kind", trackKeys),
		with("an end by ttl is told when it is met", trackExpiry),
		with("a clear is told", trackClear),
		with("heads", trackHeads),
		with("nothing after stop", trackStop),
		with("a slow handler is told what it loses", trackSlow),
		with("a lost connection is told", trackCut),
		with("cut off from the start", trackCutFirst),
		with("closed", trackClosed),
		with("concurrent use", trackConcurrent),
	}
}

// trackEar is a handler that remembers.
type trackEar struct {
	ear
	pause   func() // in each Changed
	changed map[string]int
	all     int
}

func (e *trackEar) Changed(keys []string) {
	if e.pause != nil {
		e.pause()
	}
	defer e.enter()()
	if e.connected == 0 {
		e.t.Error("Changed without Connected before")
	}
	for _, key := range keys {
		e.changed[key]++
	}
	clear(keys) // the slice is the handler's
}

func (e *trackEar) ChangedAll() {
	defer e.enter()()
	e.all++
}

// forget begins anew.
func (e *trackEar) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.changed)
	e.all = 0
}

// awaitKey waits until the key was told since the last forget.
func (e *trackEar) awaitKey(what, key string) {
	e.t.Helper()
	e.await(what, func() bool { return e.changed[key] > 0 || e.all > 0 })
}

func (s TrackSystem) open(t testing.TB) tier.Bytes {
	t.Helper()
	b := s.Open(t)
	t.Cleanup(func() { closeStore(t, b) })
	return b
}

func tracker(t testing.TB, b tier.Bytes) tier.BytesTracker {
	t.Helper()
	tr, ok := tier.AsBytesTracker(b)
	if !ok {
		t.Fatal("the store cannot track")
	}
	return tr
}

func (s TrackSystem) newEar(t testing.TB) *trackEar {
	return &trackEar{ear: ear{t: t, within: s.Within}, changed: make(map[string]int)}
}

// track waits until the tracking stands.
func (s TrackSystem) track(t testing.TB, b tier.Bytes) (*trackEar, func()) {
	t.Helper()
	e := s.newEar(t)
	stop := s.start(t, b, e)
	e.await("a connection", func() bool { return e.connected > 0 })
	return e, stop
}

func (s TrackSystem) start(t testing.TB, b tier.Bytes, e *trackEar) (stop func()) {
	t.Helper()
	end, err := tracker(t, b).Track(e)
	if err != nil {
		t.Fatalf("Track: %v", err)
	}
	return func() { end(); e.closed.Store(true) }
}

func put(t testing.TB, b tier.Bytes, key, value string) {
	t.Helper()
	if err := b.Set(context.Background(), key, []byte(value), time.Hour); err != nil {
		t.Errorf("Set: %v", err)
	}
}

func trackWrites(t testing.TB, s TrackSystem) {
	a, b := s.open(t), s.open(t)
	e, _ := s.track(t, a)
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	for name, by := range map[string]tier.Bytes{"itself": a, "another": b} {
		write := func(what, key string, f func()) {
			t.Helper()
			e.forget()
			f()
			e.awaitKey(fmt.Sprintf("%s by %s", what, name), key)
		}
		write("Set", "k", func() { put(t, by, "k", "1") })
		write("Set of the same", "k", func() { put(t, by, "k", "1") })
		write("Delete", "k", func() { must(by.Delete(ctx, "k")) })
		if batch, ok := tier.AsBytesBatcher(by); ok {
			write("SetMany", "m2", func() {
				must(batch.SetMany(ctx, []string{"m1", "m2"}, [][]byte{{1}, {2}}, []time.Duration{time.Hour, time.Hour}))
			})
			write("DeleteMany", "m2", func() { must(batch.DeleteMany(ctx, []string{"m1", "m2"})) })
		}
		if swap, ok := tier.AsBytesSwapper(by); ok {
			write("SetIf", "s", func() {
				if stored, err := swap.SetIf(ctx, "s", []byte("1"), time.Hour, nil); err != nil || !stored {
					t.Errorf("SetIf: %v, %v", stored, err)
				}
			})
			must(by.Delete(ctx, "s"))
		}
	}
}

// A read that begins when a change is told does not find what was there before.
func trackReads(t testing.TB, s TrackSystem) {
	a, b := s.open(t), s.open(t)
	e, _ := s.track(t, a)
	for i := range 50 {
		e.forget()
		want := fmt.Sprint(i)
		put(t, b, "k", want)
		e.awaitKey("the change", "k")
		if got, err := a.Get(context.Background(), "k"); err != nil || string(got) != want {
			t.Fatalf("read %q, %v after the write of %q was told", got, err, want)
		}
	}
}

func trackKeys(t testing.TB, s TrackSystem) {
	b := s.open(t)
	e, _ := s.track(t, s.open(t))
	for _, key := range keys {
		put(t, b, key, "v")
	}
	e.await("all keys", func() bool { return e.all > 0 || len(e.changed) >= len(keys) })
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range keys {
		if e.all == 0 && e.changed[key] == 0 {
			t.Errorf("key %s was not told", brief(key))
		}
	}
	for key := range e.changed {
		if !slices.Contains(keys, key) {
			t.Errorf("key %s was told, which is none", brief(key))
		}
	}
}

func trackExpiry(t testing.TB, s TrackSystem) {
	b := s.open(t)
	e, _ := s.track(t, s.open(t))
	if err := b.Set(context.Background(), "k", []byte("v"), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	awaitBus(t, s.Within, "the end", func() bool {
		v, err := b.Get(context.Background(), "k")
		return err == nil && v == nil
	})
	// The end may have come before the write was told.
	e.await("the write, then the end", func() bool { return e.all > 0 || e.changed["k"] > 1 })
}

func trackClear(t testing.TB, s TrackSystem) {
	b := s.open(t)
	c, ok := tier.AsClearer(b)
	if !ok {
		t.Skip("the store cannot clear")
	}
	e, _ := s.track(t, s.open(t))
	put(t, b, "a", "1")
	put(t, b, "b", "1")
	e.awaitKey("the writes", "b")
	e.forget()
	if err := c.Clear(context.Background()); err != nil {
		t.Fatal(err)
	}
	e.awaitKey("the clear of a", "a")
	e.awaitKey("the clear of b", "b")
}

func trackHeads(t testing.TB, s TrackSystem) {
	b := s.open(t)
	long := "0123456789abcdefghij"
	put(t, b, "long", long)
	put(t, b, "short", "x")
	put(t, b, "a b\r\n\xff", long)
	asked := []string{"short", "none", "long", "a b\r\n\xff", "long"}
	want := []string{"x", "", long[:tier.HeadSize], long[:tier.HeadSize], long[:tier.HeadSize]}
	heads, err := tracker(t, b).Heads(context.Background(), asked)
	if err != nil || len(heads) != len(asked) {
		t.Fatalf("Heads: %d, %v, want %d", len(heads), err, len(asked))
	}
	for i, head := range heads {
		if string(head) != want[i] || asked[i] == "none" && head != nil {
			t.Errorf("head of %q: got %q, want %q", asked[i], head, want[i])
		}
	}
	if heads, err := tracker(t, b).Heads(context.Background(), nil); err != nil || len(heads) != 0 {
		t.Errorf("Heads of nothing: %v, %v", heads, err)
	}
	returnsSoon(t, "Heads", func() {
		if _, err := tracker(t, b).Heads(cancelled(), asked); !errors.Is(err, context.Canceled) {
			t.Errorf("Heads with a context that has ended: %v", err)
		}
	})
}

func trackStop(t testing.TB, s TrackSystem) {
	a, b := s.open(t), s.open(t)
	gone, stop := s.track(t, a)
	stays, _ := s.track(t, a)
	put(t, b, "before", "1")
	gone.awaitKey("the change", "before")
	stop()
	stop()
	put(t, b, "after", "1")
	stays.awaitKey("the change after", "after")
}

// A handler that stands still costs bounded memory, keeps nobody from writing, and
// either gets all in the end or is told.
func trackSlow(t testing.TB, s TrackSystem) {
	const n, each = 90, 1000 // more bytes than any store should keep back
	a, b := s.open(t), s.open(t)
	hold := make(chan struct{})
	slow := s.newEar(t)
	slow.pause = func() { <-hold }
	s.start(t, a, slow)
	slow.await("a connection", func() bool { return slow.connected > 0 })
	other, _ := s.track(t, a)
	set := func(i int) string { return fmt.Sprintf("%0100d", i) }
	batch, batches := tier.AsBytesBatcher(b)
	for i := range n {
		keys, values, ttls := make([]string, each), make([][]byte, each), make([]time.Duration, each)
		for j := range keys {
			keys[j], values[j], ttls[j] = set(i*each+j), []byte("x"), time.Minute
		}
		if !batches {
			put(t, b, keys[0], "x")
			continue
		}
		if err := batch.SetMany(context.Background(), keys, values, ttls); err != nil {
			t.Fatalf("SetMany: %v", err)
		}
	}
	put(t, b, "hello", "x")
	other.await("a change beside a handler that stands still, or Lost", func() bool { return other.changed["hello"] > 0 || len(other.lost) > 0 })
	close(hold)
	slow.await("all changes, or Lost", func() bool { return len(slow.lost) > 0 || slow.changed["hello"] > 0 })
	slow.await("Connected again", func() bool { return slow.up })
	awaitBus(t, s.Within, "a change after that", func() bool {
		put(t, b, "last", "x")
		slow.mu.Lock()
		defer slow.mu.Unlock()
		return slow.changed["last"] > 0
	})
}

func trackCut(t testing.TB, s TrackSystem) {
	if s.Cut == nil {
		t.Skip("the system cannot be cut")
	}
	a, b := s.open(t), s.open(t)
	e, _ := s.track(t, a)
	for round := 1; round <= 2; round++ {
		s.Cut()
		e.await("Lost", func() bool { return len(e.lost) >= round })
		s.Restore()
		e.await("Connected", func() bool { return e.up && e.connected > round })
		e.forget()
		awaitBus(t, s.Within, "a write after the cut", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return b.Set(ctx, "k", []byte("v"), time.Hour) == nil
		})
		e.awaitKey("the change after the cut", "k")
	}
}

func trackCutFirst(t testing.TB, s TrackSystem) {
	if s.Cut == nil {
		t.Skip("the system cannot be cut")
	}
	s.Cut()
	b := s.open(t)
	e := s.newEar(t)
	s.start(t, b, e)
	time.Sleep(50 * time.Millisecond)
	e.mu.Lock()
	if e.up {
		t.Error("Connected while cut off")
	}
	e.mu.Unlock()
	s.Restore()
	e.await("Connected", func() bool { return e.up })

	s.Cut()
	returnsSoon(t, "Close while cut off", func() { closeStore(t, b) })
	e.closed.Store(true)
	s.Restore()
}

func trackClosed(t testing.TB, s TrackSystem) {
	before := runtime.NumGoroutine()
	a, b := s.Open(t), s.Open(t)
	e, stop := s.track(t, b)
	put(t, b, "k", "x")
	e.awaitKey("the change", "k")
	closeStore(t, b)
	e.closed.Store(true)
	stop()
	put(t, a, "k", "y")
	if _, err := tracker(t, b).Track(e); !errors.Is(err, tier.ErrClosed) {
		t.Errorf("Track after Close: %v", err)
	}
	if _, err := tracker(t, b).Heads(context.Background(), []string{"k"}); !errors.Is(err, tier.ErrClosed) {
		t.Errorf("Heads after Close: %v", err)
	}
	closeStore(t, a)
	wantGoroutines(t, before)
}

func trackConcurrent(t testing.TB, s TrackSystem) {
	b, other := s.Open(t), s.open(t)
	g := group{t: t}
	g.run(8, func(i int) {
		for n := range 5 {
			e := s.newEar(t)
			stop, err := tracker(t, b).Track(e)
			if err != nil {
				if !errors.Is(err, tier.ErrClosed) {
					t.Errorf("Track: %v", err)
				}
				return
			}
			put(t, other, fmt.Sprint("key ", n), "x")
			if i%2 == 0 {
				_, err := tracker(t, b).Heads(context.Background(), []string{"key 0"})
				if err != nil && !errors.Is(err, tier.ErrClosed) {
					t.Errorf("Heads: %v", err)
				}
			}
			stop()
			e.closed.Store(true)
			if i == 7 && n == 3 {
				closeStore(t, b)
			}
		}
	})
	g.wait()
	closeStore(t, b)
}
