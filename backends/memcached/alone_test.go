package memcached_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// keysByServer returns n keys of each server.
func keysByServer(t *testing.T, n int, addrs ...string) map[string][]string {
	t.Helper()
	selector, err := memcached.NewSelector(addrs...)
	if err != nil {
		t.Fatal(err)
	}
	keys := make(map[string][]string)
	for i, full := 0, 0; full < len(addrs); i++ {
		key := fmt.Sprint("key", i)
		at, err := selector.PickServer(key)
		if err != nil {
			t.Fatal(err)
		}
		if of := keys[at.String()]; len(of) < n {
			if keys[at.String()] = append(of, key); len(of) == n-1 {
				full++
			}
		}
	}
	return keys
}

// TestC91OneServerOfSeveralFails: its keys fail at once, also where many ask for them, and the
// others' are served as ever; it is asked again soon after it is back.
func TestC91OneServerOfSeveralFails(t *testing.T) {
	for name, fail := range map[string]func(*servers.FaultProxy){
		"it swallows all": (*servers.FaultProxy).BlackHole,
		"it is cut off":   (*servers.FaultProxy).Cut,
	} {
		t.Run(name, func(t *testing.T) {
			proxy := servers.Proxy(t, servers.Memcached(t).Addr())
			addrs := []string{proxy.Addr(), servers.Memcached(t).Addr(), servers.Memcached(t).Addr()}
			s := open(t, memcached.Options{Servers: addrs, MaxConnections: 8, Timeout: 200 * time.Millisecond})
			keys := keysByServer(t, 20, addrs...)
			for _, of := range keys {
				for _, key := range of {
					set(t, s, key, "value", time.Hour)
				}
			}
			var healthy []string
			for _, addr := range addrs[1:] {
				healthy = append(healthy, keys[addr]...)
			}
			fail(proxy)
			ask := func(key string) error {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err := s.Get(ctx, key)
				return err
			}
			alone := func(err error) bool {
				var left *memcached.LeftAloneError
				return errors.As(err, &left) && left.Server == proxy.Addr() && !tier.IsOutage(err)
			}
			// Many ask for its keys, as many as there are connections and more.
			var asking sync.WaitGroup
			for _, key := range keys[proxy.Addr()] {
				asking.Go(func() { _ = ask(key) })
			}
			asking.Wait()
			await(t, "the server is left alone", func() bool {
				want(t, s, healthy[0], "value")
				return alone(ask(keys[proxy.Addr()][0]))
			})

			// One call in a second asks it.
			refused, met := 0, 0
			for start := time.Now(); time.Since(start) < 1500*time.Millisecond; {
				for _, key := range healthy {
					want(t, s, key, "value")
				}
				if err := ask(keys[proxy.Addr()][1]); alone(err) {
					refused++
				} else if met++; err == nil {
					t.Fatal("a server that does not answer has answered")
				}
			}
			if refused == 0 || met > 3 {
				t.Errorf("%d calls were told at once, %d asked the server: want most told, and one a second that asks", refused, met)
			}

			proxy.Restore()
			await(t, "the server is asked again", func() bool { return ask(keys[proxy.Addr()][0]) == nil })
			for _, key := range keys[proxy.Addr()] {
				if err := ask(key); err != nil {
					t.Errorf("after its return: %s: %v", key, err)
				}
			}
		})
	}
}

// TestOneServerIsAlwaysAsked: of one server alone it is the cache's breaker that leaves it
// alone.
func TestOneServerIsAlwaysAsked(t *testing.T) {
	dials := 0
	s := open(t, memcached.Options{Servers: []string{"127.0.0.1:1"}, DialContext: func(context.Context, string, string) (net.Conn, error) {
		dials++
		return nil, errors.New("refused")
	}})
	for range 10 {
		if _, err := s.Get(t.Context(), "key"); err == nil {
			t.Fatal("an answer from nowhere")
		}
	}
	if dials != 10 {
		t.Errorf("%d dials for 10 calls", dials)
	}
}

// TestIdleConnectionsThatDieAreNoFailure: a server that closes connections which have been
// idle, all at once, is asked on new ones.
func TestIdleConnectionsThatDieAreNoFailure(t *testing.T) {
	proxy := servers.Proxy(t, servers.Memcached(t).Addr())
	addrs := []string{proxy.Addr(), servers.Memcached(t).Addr()}
	s := open(t, memcached.Options{Servers: addrs})
	keys := keysByServer(t, 30, addrs...)[proxy.Addr()]
	for range 5 {
		var asking sync.WaitGroup
		for _, key := range keys {
			asking.Go(func() { set(t, s, key, "value", time.Hour) })
		}
		asking.Wait()
		proxy.Cut()
		proxy.Restore()
		for _, key := range keys {
			asking.Go(func() { want(t, s, key, "value") })
		}
		asking.Wait()
	}
}

// isLeftAlone reports whether the error says so of a server that was not asked.
func isLeftAlone(err error) bool {
	var left *memcached.LeftAloneError
	return errors.As(err, &left) && left.Err == nil
}

// TestAServerIsLeftAloneOnceTwoCallsFailed: those that come later meet none of the connections
// of before, but are told at once.
func TestAServerIsLeftAloneOnceTwoCallsFailed(t *testing.T) {
	proxy := servers.Proxy(t, servers.Memcached(t).Addr())
	addrs := []string{proxy.Addr(), servers.Memcached(t).Addr()}
	s := open(t, memcached.Options{Servers: addrs, Timeout: time.Second})
	byServer := keysByServer(t, 64, addrs...)
	keys, well := byServer[proxy.Addr()], byServer[addrs[1]][0]
	proxy.Delay(5 * time.Millisecond) // so that each call makes a connection
	var calls sync.WaitGroup
	for _, key := range keys {
		calls.Go(func() { set(t, s, key, "value", time.Hour) })
	}
	calls.Wait()
	proxy.BlackHole()
	asked := 0
	for _, key := range keys {
		if _, err := s.Get(t.Context(), key); err == nil {
			t.Error("a server that does not answer has answered")
		} else if !isLeftAlone(err) {
			asked++
		}
		set(t, s, well, "value", time.Hour)
	}
	if asked > 3 {
		t.Errorf("%d of %d calls asked a server that does not answer, want 2, and one a second", asked, len(keys))
	}
}

// TestTheFailureOfOneServerIsNoOutage: callers who met it before it was left alone, or asked
// it since, do not say that the store is down, as another server answers.
func TestTheFailureOfOneServerIsNoOutage(t *testing.T) {
	for name, fail := range map[string]func(*servers.FaultProxy){"black hole": (*servers.FaultProxy).BlackHole, "cut": (*servers.FaultProxy).Cut} {
		t.Run(name, func(t *testing.T) {
			proxy := servers.Proxy(t, servers.Memcached(t).Addr())
			addrs := []string{proxy.Addr(), servers.Memcached(t).Addr()}
			s := open(t, memcached.Options{Servers: addrs})
			keys := keysByServer(t, 12, addrs...)
			set(t, s, keys[addrs[1]][0], "value", time.Hour)
			var calls sync.WaitGroup
			turns := make(chan struct{}) // one after each answer of the other server, which is to have a core too
			for i, key := range keys[proxy.Addr()] {
				calls.Go(func() {
					for n := 0; ; n++ {
						if _, goOn := <-turns; !goOn {
							return
						}
						ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
						var err error
						if (i+n)%4 == 0 {
							err = s.Set(ctx, key, []byte("value"), time.Hour)
						} else {
							_, err = s.Get(ctx, key)
						}
						if tier.IsOutage(err) {
							t.Errorf("an outage: %v", err)
						}
						cancel()
					}
				})
			}
			fail(proxy)
			for start := time.Now(); time.Since(start) < 2200*time.Millisecond; { // two are asked again meanwhile
				want(t, s, keys[addrs[1]][0], "value")
				select {
				case turns <- struct{}{}:
				default: // all wait for answers
				}
			}
			close(turns)
			calls.Wait()
		})
	}
}

// TestTheOutageOfAllServersIsOne: when none answers the cache's breaker is to know.
func TestTheOutageOfAllServersIsOne(t *testing.T) {
	one, other := servers.Proxy(t, servers.Memcached(t).Addr()), servers.Proxy(t, servers.Memcached(t).Addr())
	addrs := []string{one.Addr(), other.Addr()}
	s := open(t, memcached.Options{Servers: addrs, Timeout: 50 * time.Millisecond})
	keys := keysByServer(t, 1, addrs...)
	for _, addr := range addrs {
		set(t, s, keys[addr][0], "value", time.Hour)
	}
	one.BlackHole()
	other.BlackHole()
	for range 4 {
		for _, addr := range addrs {
			if _, err := s.Get(t.Context(), keys[addr][0]); !tier.IsOutage(err) {
				t.Errorf("no server answers: got %v, want an outage", err)
			}
		}
	}
	// As soon as one is back it is the other that is left alone.
	one.Restore()
	await(t, "the server that is back is asked", func() bool {
		_, err := s.Get(t.Context(), keys[one.Addr()][0])
		return err == nil
	})
	await(t, "the other is left alone", func() bool {
		_, err := s.Get(t.Context(), keys[other.Addr()][0])
		return isLeftAlone(err)
	})
}

// TestAServerThatReadsNothingIsLeftAlone: to write in vain is to be met with silence.
func TestAServerThatReadsNothingIsLeftAlone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
	addrs := []string{l.Addr().String(), servers.Memcached(t).Addr()}
	s := open(t, memcached.Options{Servers: addrs, Timeout: 100 * time.Millisecond, MaxValueSize: 64 << 20})
	keys := keysByServer(t, 3, addrs...)
	value := make([]byte, 16<<20)
	for _, key := range keys[addrs[0]] {
		err = s.Set(t.Context(), key, value, time.Hour)
		set(t, s, keys[addrs[1]][0], "value", time.Hour)
	}
	if !isLeftAlone(err) {
		t.Errorf("after two writes that timed out: got %v, want the server left alone", err)
	}
}

// respond answers each line by what answer returns of it, until it returns "".
func respond(t *testing.T, answer func(line string) string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				lines := bufio.NewScanner(c)
				for lines.Scan() {
					text := answer(lines.Text())
					if text == "" {
						return
					}
					if _, err := io.WriteString(c, text); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestHalfAnAnswerIsNone: a server whose answers begin, and do not end, is left alone.
func TestHalfAnAnswerIsNone(t *testing.T) {
	addr := respond(t, func(line string) string {
		return "VALUE " + strings.Fields(line + " key")[1] + " 0 100000 1\r\nxxxx"
	})
	addrs := []string{addr, servers.Memcached(t).Addr()}
	s := open(t, memcached.Options{Servers: addrs, Timeout: 100 * time.Millisecond})
	var err error
	keys := keysByServer(t, 3, addrs...)
	for _, key := range keys[addr] {
		_, err = s.Get(t.Context(), key)
		set(t, s, keys[addrs[1]][0], "value", time.Hour)
	}
	if !isLeftAlone(err) {
		t.Errorf("after two calls that timed out: got %v, want the server left alone", err)
	}
}

// TestASlowServerIsLeftAlone: slower than its callers wait, though faster than the socket's
// time limit.
func TestASlowServerIsLeftAlone(t *testing.T) {
	for _, limit := range []time.Duration{50 * time.Millisecond, 15 * time.Millisecond} {
		for _, gather := range []int{0, 1} {
			t.Run(fmt.Sprint(limit, " ", gather), func(t *testing.T) { slowServerIsLeftAlone(t, limit, gather) })
		}
	}
}

func slowServerIsLeftAlone(t *testing.T, limit time.Duration, gather int) {
	proxy := servers.Proxy(t, servers.Memcached(t).Addr())
	addrs := []string{proxy.Addr(), servers.Memcached(t).Addr()}
	s := open(t, memcached.Options{Servers: addrs, Gather: gather})
	keys := keysByServer(t, 20, addrs...)
	set(t, s, keys[addrs[1]][0], "value", time.Hour)
	proxy.Delay(150 * time.Millisecond)
	get := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := s.Get(ctx, keys[proxy.Addr()][0])
		want(t, s, keys[addrs[1]][0], "value")
		return err
	}
	// Where calls have little time it is known when their answers come, too late.
	await(t, "the server is left alone", func() bool { return isLeftAlone(get(limit)) })
	asked := 0
	for range 100 {
		if !isLeftAlone(get(limit)) {
			asked++
		}
	}
	if asked > 2 {
		t.Errorf("%d of 100 calls asked, want one a second", asked)
	}

	// A caller in a hurry learns nothing of a server that is well.
	proxy.Restore()
	await(t, "the server is asked again", func() bool { return get(time.Second) == nil })
	proxy.Delay(5 * time.Millisecond)
	for range 20 {
		_ = get(time.Millisecond)
	}
	if err := get(time.Second); err != nil {
		t.Errorf("after calls that had no time: %v", err)
	}
}

// mutable is a connection on whose other side nobody is any more, once that is said: what is
// written is lost.
type mutable struct {
	net.Conn
	mute *atomic.Bool
}

func (m mutable) Write(b []byte) (int, error) {
	if m.mute.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// TestConnectionsThatDiedInSilence: a server is back when it answers on new connections,
// however many idle ones of before lead nowhere.
func TestConnectionsThatDiedInSilence(t *testing.T) {
	m := servers.Memcached(t)
	var mu sync.Mutex
	var made []*atomic.Bool
	addrs := []string{m.Addr(), servers.Memcached(t).Addr()}
	s := open(t, memcached.Options{Servers: addrs, Timeout: 100 * time.Millisecond, Gather: 1,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil || address != m.Addr() {
				return conn, err
			}
			mu.Lock()
			defer mu.Unlock()
			made = append(made, new(atomic.Bool))
			return mutable{conn, made[len(made)-1]}, nil
		}})
	keys := keysByServer(t, 20, addrs...)
	for range 10 {
		var calls sync.WaitGroup
		for _, key := range keys[m.Addr()] {
			calls.Go(func() { _ = s.Set(t.Context(), key, []byte("value"), time.Hour) })
		}
		calls.Wait()
	}
	mu.Lock()
	idle := len(made)
	for _, mute := range made {
		mute.Store(true)
	}
	mu.Unlock()
	if idle < 5 {
		t.Fatalf("%d connections, too few to tell", idle)
	}
	failures := 0
	await(t, "the server is asked on a new connection", func() bool {
		set(t, s, keys[addrs[1]][0], "value", time.Hour)
		_, err := s.Get(t.Context(), keys[m.Addr()][0])
		if err != nil && !isLeftAlone(err) {
			failures++
		}
		return err == nil
	})
	if failures > 2 {
		t.Errorf("%d calls met connections that were dead, want 2 at most", failures)
	}
}

// TestACallThatIsNotMadeAsksNobody: of one whose context has ended the next call need not wait
// a second.
func TestACallThatIsNotMadeAsksNobody(t *testing.T) {
	proxy := servers.Proxy(t, servers.Memcached(t).Addr())
	addrs := []string{proxy.Addr(), servers.Memcached(t).Addr()}
	s := open(t, memcached.Options{Servers: addrs, Timeout: 100 * time.Millisecond})
	keys := keysByServer(t, 1, addrs...)
	set(t, s, keys[addrs[0]][0], "value", time.Hour)
	proxy.Cut()
	await(t, "the server is left alone", func() bool {
		set(t, s, keys[addrs[1]][0], "value", time.Hour)
		_, err := s.Get(t.Context(), keys[addrs[0]][0])
		return isLeftAlone(err)
	})
	left := time.Now()
	proxy.Restore()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	await(t, "the server is asked again", func() bool {
		for range 100 {
			if _, err := s.Get(ended, keys[addrs[0]][0]); !errors.Is(err, context.Canceled) {
				t.Errorf("with a context that has ended: %v", err)
			}
		}
		_, err := s.Get(t.Context(), keys[addrs[0]][0])
		return err == nil
	})
	if took := time.Since(left); took > 1900*time.Millisecond {
		t.Errorf("asked again after %v, want a second", took)
	}
}

// TestDialsThatFailCostNoConnection: a server that takes no more connections, but answers on
// those that it has, is asked on these.
func TestDialsThatFailCostNoConnection(t *testing.T) {
	m := servers.Memcached(t)
	var dials atomic.Int32
	addrs := []string{m.Addr(), servers.Memcached(t).Addr()}
	s := open(t, memcached.Options{Servers: addrs, MaxConnections: 32, Gather: 1, Timeout: 100 * time.Millisecond,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == m.Addr() && dials.Add(1) > 4 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		}})
	keys := keysByServer(t, 24, addrs...)[m.Addr()]
	if _, err := s.Get(t.Context(), keys[0]); err != nil { // reads have connections of their own
		t.Fatal(err)
	}
	var failed atomic.Int32
	var calls sync.WaitGroup
	for _, key := range keys {
		calls.Go(func() {
			for range 10 {
				if err := s.Set(t.Context(), key, []byte("value"), time.Hour); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	calls.Wait()
	if failed.Load() == 0 {
		t.Fatal("no dial failed, so that was not tested")
	}
	for _, key := range keys {
		if _, err := s.Get(t.Context(), key); err != nil {
			t.Fatalf("on a connection that works: %v", err)
		}
	}
}

// TestAServerThatClosesCostsOthersNothing: one that closes each connection after its answer
// has the connections of others stay.
func TestAServerThatClosesCostsOthersNothing(t *testing.T) {
	var answered atomic.Bool
	closing := respond(t, func(string) string {
		if answered.Swap(!answered.Load()) {
			return ""
		}
		return "END\r\n"
	})
	m := servers.Memcached(t)
	var dials atomic.Int32
	addrs := []string{closing, m.Addr()}
	s := open(t, memcached.Options{Servers: addrs, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == m.Addr() {
			dials.Add(1)
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	keys := keysByServer(t, 20, addrs...)
	for i := range 20 {
		set(t, s, keys[m.Addr()][i], "value", time.Hour)
		_, _ = s.Get(t.Context(), keys[closing][i])
	}
	if n := dials.Load(); n > 2 {
		t.Errorf("%d connections to a server that is well, for calls one after the other", n)
	}
}

// TestBackOneIntervalAfterAProbeThatWasLost: how long a call waited that asked in vain does
// not put off the next one.
func TestBackOneIntervalAfterAProbeThatWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		asked := make(chan struct{}, 100)
		dial := func(_ context.Context, _, address string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				lines := bufio.NewScanner(far)
				for lines.Scan() {
					if address == "a:1" && down.Load() {
						asked <- struct{}{}
						continue
					}
					if _, err := io.WriteString(far, "END\r\n"); err != nil {
						return
					}
				}
			}()
			return near, nil
		}
		const timeout = 900 * time.Millisecond
		addrs := []string{"a:1", "b:1"}
		s := open(t, memcached.Options{Servers: addrs, Timeout: timeout, DialContext: dial})
		keys := keysByServer(t, 1, addrs...)
		get := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := s.Get(ctx, keys["a:1"][0])
			if _, err := s.Get(t.Context(), keys["b:1"][0]); err != nil {
				t.Errorf("of the other server: %v", err)
			}
			return err
		}
		if err := get(); err != nil {
			t.Fatal(err)
		}
		down.Store(true)
		for !isLeftAlone(get()) {
			time.Sleep(time.Millisecond)
		}
		for range len(asked) {
			<-asked
		}
		for len(asked) == 0 {
			_ = get()
			time.Sleep(time.Millisecond)
		}
		down.Store(false)
		lost := time.Now()
		for get() != nil {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(lost); took > time.Second+100*time.Millisecond {
			t.Errorf("asked again %v after a probe that was lost, want one interval", took)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * timeout)
	})
}
