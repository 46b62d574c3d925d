package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
)

// BusSystem is a messaging system under test.
type BusSystem struct {
	// Open returns a bus that is connected to the system apart from others, as from
	// another process. The suite closes it.
	Open func(t testing.TB) tier.Bus

	// Cut ends all connections of all buses and keeps them from connecting again, until
	// Restore. Nil where the test cannot do that: what must hold then is not checked.
	Cut, Restore func()

	// Within is how long the system may take to notice that a connection is lost, or
	// that there is one again. Zero: 10 s.
	Within time.Duration
}

// TestBus checks a bus. Each check has a system of its own.
func TestBus(t *testing.T, newSystem func(t testing.TB) BusSystem) {
	t.Helper()
	runChecks(t, false, newSystem, busChecks())
}

// TestBusVirtual is TestBus in virtual time, for a system inside the process.
func TestBusVirtual(t *testing.T, newSystem func(t testing.TB) BusSystem) {
	t.Helper()
	runChecks(t, true, newSystem, busChecks())
}

func busChecks() []check[func(testing.TB) BusSystem] {
	with := func(name string, run func(t testing.TB, s BusSystem)) check[func(testing.TB) BusSystem] {
		return check[func(testing.TB) BusSystem]{name, func(t testing.TB, newSystem func(testing.TB) BusSystem) {
			s := newSystem(t)
			if s.Within == 0 {
				s.Within = 10 * time.Second
			}
			run(t, s)
		}}
	}
	return []check[func(testing.TB) BusSystem]{
		with("all who subscribe get each message", busDelivers),
		with("messages of any bytes arrive as they are", busAnyBytes),
		with("messages of one publisher arrive in order", busOrder),
		with("channels are apart", busChannels),
		with("nothing after unsubscribe", busUnsubscribe),
		with("a slow handler is told what it loses", busSlow),
		with("a lost connection is told", busCut),
		with("cut off from the start", busCutFirst),
		with("a context that has ended", busCancelled),
		with("closed", busClosed),
		with("concurrent use", busConcurrent),
	}
}

// ear is what handlers share that remember.
type ear struct {
	t      testing.TB
	within time.Duration
	inside atomic.Int32
	closed atomic.Bool

	mu        sync.Mutex
	connected int
	lost      []error
	up        bool
}

// busEar is a handler that remembers.
type busEar struct {
	ear
	pause    func() // in each Message
	messages []string
}

func (e *ear) enter() func() {
	if e.inside.Add(1) != 1 {
		e.t.Error("two calls of one handler at a time")
	}
	if e.closed.Load() {
		e.t.Error("a handler was called after its subscription had ended")
	}
	e.mu.Lock()
	return func() { e.mu.Unlock(); e.inside.Add(-1) }
}

func (e *ear) Connected() {
	defer e.enter()()
	if e.up {
		e.t.Error("Connected twice without Lost in between")
	}
	e.up = true
	e.connected++
}

func (e *busEar) Message(m []byte) {
	if e.pause != nil {
		e.pause()
	}
	defer e.enter()()
	e.messages = append(e.messages, string(m))
}

func (e *ear) Lost(why error) {
	defer e.enter()()
	if why == nil {
		e.t.Error("Lost without a reason")
	}
	e.up = false
	e.lost = append(e.lost, why)
}

// await waits until ok, which is called with the ear's lock held.
func (e *ear) await(what string, ok func() bool) {
	e.t.Helper()
	awaitBus(e.t, e.within, what, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return ok()
	})
}

func awaitBus(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	if !eventually(time.Sleep, within, ok) {
		t.Errorf("not within %v: %s", within, what)
	}
}

func (s BusSystem) open(t testing.TB) tier.Bus {
	t.Helper()
	b := s.Open(t)
	t.Cleanup(func() { closeStore(t, b) })
	return b
}

// listen subscribes and waits until the subscription stands.
func (s BusSystem) listen(t testing.TB, b tier.Bus, channel string) (*busEar, func()) {
	t.Helper()
	e := &busEar{ear: ear{t: t, within: s.Within}}
	unsubscribe := s.subscribe(t, b, channel, e)
	e.await("a connection", func() bool { return e.connected > 0 })
	return e, unsubscribe
}

func (s BusSystem) subscribe(t testing.TB, b tier.Bus, channel string, e *busEar) func() {
	t.Helper()
	unsubscribe, err := b.Subscribe(channel, e)
	if err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	return func() { unsubscribe(); e.closed.Store(true) }
}

func publish(t testing.TB, b tier.Bus, channel, message string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := b.Publish(ctx, channel, []byte(message)); err != nil {
		t.Errorf("Publish: %v", err)
	}
}

func (e *busEar) has(want ...string) func() bool {
	return func() bool {
		got := distinct(e.messages)
		return strings.Join(got, "|") == strings.Join(want, "|")
	}
}

// distinct leaves out what repeats: a message may be delivered more than once.
func distinct(messages []string) (once []string) {
	seen := make(map[string]bool)
	for _, m := range messages {
		if !seen[m] {
			once = append(once, m)
		}
		seen[m] = true
	}
	return once
}

func busDelivers(t testing.TB, s BusSystem) {
	a, b := s.open(t), s.open(t)
	one, _ := s.listen(t, b, "channel")
	two, _ := s.listen(t, b, "channel")
	three, _ := s.listen(t, s.open(t), "channel")
	publish(t, a, "channel", "first")
	publish(t, b, "channel", "second") // its own subscriptions may have it or not
	for i, e := range []*busEar{one, two} {
		e.await(fmt.Sprintf("the message at subscriber %d", i+1), func() bool {
			got := distinct(e.messages)
			return len(got) > 0 && got[0] == "first"
		})
	}
	three.await("both messages", three.has("first", "second"))
}

func busAnyBytes(t testing.TB, s BusSystem) {
	a := s.open(t)
	e, _ := s.listen(t, s.open(t), "channel")
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	want := []string{"", "\x00", "\r\n", "\xff\xfe", string(every), strings.Repeat("x", 1<<20)}
	buffer := []byte(nil)
	for _, m := range want {
		buffer = append(buffer[:0], m...)
		publish(t, a, "channel", string(buffer))
		clear(buffer) // the slice is the publisher's again
	}
	e.await("all messages as they were", e.has(want...))
}

func busOrder(t testing.TB, s BusSystem) {
	const publishers, each = 4, 100
	e, _ := s.listen(t, s.open(t), "channel")
	g := group{t: t}
	g.run(publishers, func(p int) {
		b := s.Open(t)
		defer closeStore(t, b)
		for i := range each {
			publish(t, b, "channel", fmt.Sprintf("%d %d", p, i))
		}
	})
	g.wait()
	e.await("all messages", func() bool { return len(e.messages) >= publishers*each && len(distinct(e.messages)) == publishers*each })
	e.mu.Lock()
	defer e.mu.Unlock()
	next := make([]int, publishers)
	for _, m := range distinct(e.messages) {
		var p, i int
		if _, err := fmt.Sscanf(m, "%d %d", &p, &i); err != nil || i != next[p] {
			t.Fatalf("got %q, want message %d of its publisher", m, next[p])
		}
		next[p]++
	}
}

func busChannels(t testing.TB, s BusSystem) {
	a, b := s.open(t), s.open(t)
	names := []string{"", "a", "a:b", "A", "*", "a*", "[a]", "{a}", "{a}b", "a b", "\x00\xff\r\n", strings.Repeat("k", 1024)}
	ears := make([]*busEar, len(names))
	for i, name := range names {
		ears[i], _ = s.listen(t, b, name)
	}
	for i, name := range names {
		publish(t, a, name, fmt.Sprint("for ", i))
	}
	for i, e := range ears {
		e.await(fmt.Sprintf("the message of channel %s", brief(names[i])), func() bool { return len(e.messages) > 0 })
	}
	for i, e := range ears {
		e.mu.Lock()
		if got := distinct(e.messages); len(got) != 1 || got[0] != fmt.Sprint("for ", i) {
			t.Errorf("channel %s got %q", brief(names[i]), got)
		}
		e.mu.Unlock()
	}
}

func busUnsubscribe(t testing.TB, s BusSystem) {
	a, b := s.open(t), s.open(t)
	gone, unsubscribe := s.listen(t, b, "channel")
	stays, _ := s.listen(t, b, "channel")
	publish(t, a, "channel", "before")
	gone.await("the message", gone.has("before"))
	unsubscribe()
	unsubscribe()
	publish(t, a, "channel", "after")
	stays.await("both messages", stays.has("before", "after"))
	gone.mu.Lock()
	defer gone.mu.Unlock()
	if got := distinct(gone.messages); len(got) != 1 {
		t.Errorf("after unsubscribe: got %q", got)
	}
}

// A handler that stands still costs bounded memory, delays nobody else, and either
// gets all in the end or is told.
func busSlow(t testing.TB, s BusSystem) {
	const n = 400
	body := strings.Repeat("x", 100_000)
	a, b := s.open(t), s.open(t)
	hold := make(chan struct{})
	slow := &busEar{ear: ear{t: t, within: s.Within}, pause: func() { <-hold }}
	s.subscribe(t, b, "channel", slow)
	slow.await("a connection", func() bool { return slow.connected > 0 })
	other, _ := s.listen(t, b, "other")
	for i := range n {
		publish(t, a, "channel", fmt.Sprint(i, body))
	}
	publish(t, a, "other", "hello")
	other.await("a message beside a handler that stands still", other.has("hello"))
	close(hold)
	slow.await("all messages, or Lost", func() bool { return len(slow.lost) > 0 || len(slow.messages) >= n && len(distinct(slow.messages)) == n })
	slow.await("Connected again", func() bool { return slow.up })
	publish(t, a, "channel", "last")
	slow.await("a message after that", func() bool {
		return len(slow.messages) > 0 && slow.messages[len(slow.messages)-1] == "last"
	})
}

func busCut(t testing.TB, s BusSystem) {
	if s.Cut == nil {
		t.Skip("the system cannot be cut")
	}
	a, b := s.open(t), s.open(t)
	e, _ := s.listen(t, b, "channel")
	for round := 1; round <= 2; round++ {
		s.Cut()
		e.await("Lost", func() bool { return len(e.lost) >= round })
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		start := time.Now()
		if err := a.Publish(ctx, "channel", []byte("unheard")); err == nil {
			t.Error("Publish while cut off: no error")
		}
		if took := time.Since(start); took > soon {
			t.Errorf("Publish while cut off took %v with a second's time", took)
		}
		cancel()
		s.Restore()
		e.await("Connected", func() bool { return e.up && e.connected > round })
		want := fmt.Sprint("after ", round)
		awaitBus(t, s.Within, "a message after the cut", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return a.Publish(ctx, "channel", []byte(want)) == nil
		})
		e.await("the message after the cut", func() bool {
			return len(e.messages) > 0 && e.messages[len(e.messages)-1] == want
		})
	}
}

func busCutFirst(t testing.TB, s BusSystem) {
	if s.Cut == nil {
		t.Skip("the system cannot be cut")
	}
	s.Cut()
	b := s.open(t)
	e := &busEar{ear: ear{t: t, within: s.Within}}
	s.subscribe(t, b, "channel", e)
	time.Sleep(50 * time.Millisecond)
	e.mu.Lock()
	if e.up {
		t.Error("Connected while cut off")
	}
	e.mu.Unlock()
	s.Restore()
	e.await("Connected", func() bool { return e.up })
	publish(t, b, "channel", "x")

	s.Cut()
	returnsSoon(t, "Close while cut off", func() { closeStore(t, b) })
	e.closed.Store(true)
	s.Restore()
}

func busCancelled(t testing.TB, s BusSystem) {
	b := s.open(t)
	returnsSoon(t, "Publish", func() {
		if err := b.Publish(cancelled(), "channel", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("Publish with a context that has ended: %v", err)
		}
	})
}

func busClosed(t testing.TB, s BusSystem) {
	before := runtime.NumGoroutine()
	a, b := s.open(t), s.Open(t)
	e, unsubscribe := s.listen(t, b, "channel")
	publish(t, a, "channel", "x")
	e.await("the message", e.has("x"))
	closeStore(t, b)
	e.closed.Store(true)
	closeStore(t, b)
	unsubscribe()
	publish(t, a, "channel", "y")
	if err := b.Publish(context.Background(), "channel", []byte("z")); !errors.Is(err, tier.ErrClosed) {
		t.Errorf("Publish after Close: %v", err)
	}
	if _, err := b.Subscribe("channel", e); !errors.Is(err, tier.ErrClosed) {
		t.Errorf("Subscribe after Close: %v", err)
	}
	closeStore(t, a)
	wantGoroutines(t, before)
}

// wantGoroutines fails the test if there are more goroutines than before.
func wantGoroutines(t testing.TB, before int) {
	t.Helper()
	// Those of a server in this process may take a moment.
	if !eventually(time.Sleep, soon, func() bool { return runtime.NumGoroutine() <= before }) {
		stacks := make([]byte, 1<<16)
		stacks = stacks[:runtime.Stack(stacks, true)]
		t.Errorf("goroutines: %d before, %d after Close\n%s", before, runtime.NumGoroutine(), bytes.TrimSpace(stacks))
	}
}

func busConcurrent(t testing.TB, s BusSystem) {
	b := s.Open(t)
	g := group{t: t}
	g.run(8, func(i int) {
		for n := range 10 {
			e := &busEar{ear: ear{t: t, within: s.Within}}
			unsubscribe, err := b.Subscribe(fmt.Sprint("channel ", n%3), e)
			if err != nil {
				if !errors.Is(err, tier.ErrClosed) {
					t.Errorf("Subscribe: %v", err)
				}
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), soon)
			if err := b.Publish(ctx, fmt.Sprint("channel ", n%3), []byte("x")); err != nil && !errors.Is(err, tier.ErrClosed) {
				t.Errorf("Publish: %v", err)
			}
			cancel()
			unsubscribe()
			e.closed.Store(true)
			if i == 7 && n == 7 {
				closeStore(t, b)
			}
		}
	})
	g.wait()
	closeStore(t, b)
}
