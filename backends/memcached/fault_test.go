package memcached_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// late is how long after its context's end a call may return on a busy machine.
const late = 200 * time.Millisecond

func set(t *testing.T, s *memcached.Store, key, value string, ttl time.Duration) {
	t.Helper()
	if err := s.Set(t.Context(), key, []byte(value), ttl); err != nil {
		t.Fatalf("Set(%q): %v", key, err)
	}
}

func want(t *testing.T, s *memcached.Store, key, want string) {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	if err != nil || got == nil || string(got) != want {
		t.Errorf("Get(%q) = %q, %v, want %q", key, got, err, want)
	}
}

func wantNothing(t *testing.T, s *memcached.Store, key string) {
	t.Helper()
	if got, err := s.Get(t.Context(), key); got != nil || err != nil {
		t.Errorf("Get(%q) = %q, %v, want nothing", key, got, err)
	}
}

// await polls until ok, for ten seconds at most.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// raw asks a server one line and returns the first line of the answer.
func raw(t *testing.T, addr, line string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, line+"\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(answer)
}

func TestC54MemcachedTTLEdges(t *testing.T) {
	addr := servers.Memcached(t).Addr()
	s := open(t, memcached.Options{Servers: []string{addr}})
	const day = 24 * time.Hour
	for _, c := range []struct{ ttl, least, most time.Duration }{ // what the server says is left
		{500 * time.Millisecond, time.Second, 2 * time.Second},
		{999 * time.Millisecond, time.Second, 2 * time.Second},
		{1500 * time.Millisecond, 2 * time.Second, 3 * time.Second},
		{30 * day, 30 * day, 30*day + 2*time.Second},
		{30*day + time.Second, 30*day + time.Second, 30*day + 3*time.Second},
		{400 * day, 400 * day, 400*day + 2*time.Second},
		{69 * 365 * day, 10 * 365 * day, 69 * 365 * day}, // until 2038
		{math.MaxInt64 - 1, 10 * 365 * day, math.MaxInt64},
	} {
		key := fmt.Sprint(int64(c.ttl))
		set(t, s, key, "value", c.ttl)
		var seconds int64
		if answer := raw(t, addr, "mg "+key+" t"); answer == "HD t-1" {
			t.Errorf("ttl %v: for ever", c.ttl)
		} else if _, err := fmt.Sscanf(answer, "HD t%d", &seconds); err != nil {
			t.Errorf("ttl %v: %q", c.ttl, answer)
		}
		// A tick of the server's clock may lie between the two calls.
		if seconds < int64(c.least/time.Second)-1 || seconds > int64(c.most/time.Second)+1 {
			t.Errorf("ttl %v: the server keeps it for %d s, want %v to %v", c.ttl, seconds, c.least, c.most)
		}
	}
	set(t, s, "endless", "value", tier.Forever)
	if answer := raw(t, addr, "mg endless t"); answer != "HD t-1" {
		t.Errorf("forever: the server says %q", answer)
	}
	for _, ttl := range []time.Duration{0, -1, math.MinInt64} {
		set(t, s, "endless", "value", ttl)
		wantNothing(t, s, "endless")
		set(t, s, "endless", "value", tier.Forever)
	}
}

// The server's clock ticks once a second: what was set just before a tick must not be
// gone just after it.
func TestC54ASubSecondTTLIsNotGoneAtOnce(t *testing.T) {
	s := open(t, memcached.Options{Servers: []string{servers.Memcached(t).Addr()}})
	const ttl = 500 * time.Millisecond
	var all sync.WaitGroup
	for i := range 10 { // over a second, so that some meet the tick
		all.Go(func() {
			time.Sleep(time.Duration(i) * 100 * time.Millisecond) // spreads the phases
			key := fmt.Sprint(i)
			begun := time.Now()
			set(t, s, key, "value", ttl)
			for time.Since(begun) < ttl-20*time.Millisecond {
				got, err := s.Get(t.Context(), key)
				if left := ttl - time.Since(begun); got == nil && left > 0 {
					t.Errorf("gone %v before its time (%v)", left, err)
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	all.Wait()
}

func TestC53AnItemUnderTheHashOfAnotherKey(t *testing.T) {
	addr := servers.Memcached(t).Addr()
	s := open(t, memcached.Options{Servers: []string{addr}})
	sum := sha256.Sum256([]byte("a b"))
	name := "#sha256#" + base64.RawURLEncoding.EncodeToString(sum[:])
	client := memcache.New(addr)
	defer client.Close()
	set(t, s, "a b", "ours", time.Minute)
	item, err := client.Get(name)
	if err != nil {
		t.Fatalf("the item of a hashed key: %v", err)
	}
	if err := client.Set(&memcache.Item{Key: name, Flags: item.Flags, Value: []byte("theirsc d\x00\x00\x00\x03")}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), "a b"); got != nil || !errors.Is(err, tier.ErrUnreadable) {
		t.Errorf("Get = %q, %v, want tier.ErrUnreadable", got, err)
	}
	if got, err := s.GetMany(t.Context(), []string{"a b", "x"}); err != nil || got[0] != nil || got[1] != nil {
		t.Errorf("GetMany = %q, %v, want nothing", got, err)
	}
	if stored, err := s.SetIf(t.Context(), "a b", []byte("ours again"), time.Minute, nil); !stored || err != nil {
		t.Errorf("SetIf over it = %v, %v, want true", stored, err)
	}
	want(t, s, "a b", "ours again")

	set(t, s, name, "a key that looks like a hash", time.Minute)
	want(t, s, "a b", "ours again")
	want(t, s, name, "a key that looks like a hash")
}

func TestC57ItemsOfOtherProgramsAreUnreadableAndOverwritten(t *testing.T) {
	addr := servers.Memcached(t).Addr()
	s := open(t, memcached.Options{Servers: []string{addr}})
	for name, write := range map[string]func() error{
		"Set": func() error { return s.Set(t.Context(), "k", []byte("ours"), time.Minute) },
		"SetIf": func() error {
			ok, err := s.SetIf(t.Context(), "k", []byte("ours"), time.Minute, nil)
			return wrong(ok, err)
		},
	} {
		if got := raw(t, addr, "set k 123 0 5\r\nother"); got != "STORED" {
			t.Fatal(got)
		}
		if got, err := s.Get(t.Context(), "k"); got != nil || !errors.Is(err, tier.ErrUnreadable) {
			t.Errorf("Get = %q, %v, want tier.ErrUnreadable", got, err)
		}
		if err := write(); err != nil {
			t.Errorf("%s over it: %v", name, err)
		}
		want(t, s, "k", "ours")
	}
}

func TestC59ConnectionsThatTheServerClosed(t *testing.T) {
	const idle = 8
	proxy := servers.Proxy(t, servers.Memcached(t).Addr())
	s := open(t, memcached.Options{Servers: []string{proxy.Addr()}, Timeout: 5 * time.Second})
	set(t, s, "k", "v1", time.Minute)

	fill := func() { // several idle connections: calls that are under way together
		proxy.Delay(30 * time.Millisecond)
		var all sync.WaitGroup
		for range idle {
			all.Go(func() { want(t, s, "k", "v1") })
		}
		all.Wait()
		proxy.Restore()
	}
	batch := []string{"k", "nothing"}
	for name, call := range map[string]func() error{
		"Get": func() error { got, err := s.Get(t.Context(), "k"); return wrong(string(got) == "v1", err) },
		"GetMany": func() error {
			got, err := s.GetMany(t.Context(), batch)
			return wrong(string(got[0]) == "v1" && got[1] == nil, err)
		},
		"Set": func() error { return s.Set(t.Context(), "k", []byte("v1"), time.Minute) },
		"SetIf": func() error {
			ok, err := s.SetIf(t.Context(), "k", []byte("v1"), time.Minute, []byte("v1"))
			return wrong(ok, err)
		},
		"Delete":     func() error { return s.Delete(t.Context(), "other") },
		"DeleteMany": func() error { return s.DeleteMany(t.Context(), []string{"other", "another"}) },
	} {
		for drop, f := range map[string]func(){"reset": proxy.Reset, "closed": func() { proxy.Cut(); proxy.Restore() }} {
			fill()
			f()
			var all sync.WaitGroup
			for range idle {
				all.Go(func() {
					if err := call(); err != nil {
						t.Errorf("%s on a connection that was %s: %v", name, drop, err)
					}
				})
			}
			all.Wait()
		}
	}
}

func wrong(ok bool, err error) error {
	if err == nil && !ok {
		return errors.New("a wrong answer")
	}
	return err
}

func TestC59IdleTimeoutOfTheServer(t *testing.T) {
	m := servers.Memcached(t, "-o", "idle_timeout=1")
	s := open(t, memcached.Options{Servers: []string{m.Addr()}})
	set(t, s, "k", "v", time.Minute)
	client := memcache.New(m.Addr())
	defer client.Close()
	await(t, "the server closes the idle connection", func() bool {
		conn, err := net.Dial("tcp", m.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(conn, "stats\r\n")
		for lines := bufio.NewScanner(conn); lines.Scan() && lines.Text() != "END"; {
			if n, found := strings.CutPrefix(lines.Text(), "STAT idle_kicks "); found {
				return n != "0"
			}
		}
		return false
	})
	want(t, s, "k", "v")
}

func TestC46AContextBoundsACall(t *testing.T) {
	proxy := servers.Proxy(t, servers.Memcached(t).Addr())
	own := open(t, memcached.Options{Servers: []string{proxy.Addr()}})
	c := memcache.New(proxy.Addr())
	defer c.Close()
	others := memcached.New(c)
	defer others.Close()
	for name, s := range map[string]*memcached.Store{"own client": own, "another's client": others} {
		for fault, f := range map[string]func(){
			"200 ms":     func() { proxy.Delay(200 * time.Millisecond) },
			"10 s":       func() { proxy.Delay(10 * time.Second) },
			"black hole": proxy.BlackHole,
		} {
			f()
			for call, run := range map[string]func(ctx context.Context) error{
				"Get": func(ctx context.Context) error { _, err := s.Get(ctx, "k"); return err },
				"Set": func(ctx context.Context) error { return s.Set(ctx, "k", []byte("v"), time.Minute) },
				"SetIf": func(ctx context.Context) error {
					_, err := s.SetIf(ctx, "k", []byte("v"), time.Minute, nil)
					return err
				},
				"Delete":     func(ctx context.Context) error { return s.Delete(ctx, "k") },
				"GetMany":    func(ctx context.Context) error { _, err := s.GetMany(ctx, []string{"k", "l"}); return err },
				"DeleteMany": func(ctx context.Context) error { return s.DeleteMany(ctx, []string{"k", "l"}) },
			} {
				const budget = 25 * time.Millisecond
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), budget)
				err := run(ctx)
				took := time.Since(begun)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s, %s, %s: got error %v, want the context's", name, fault, call, err)
				}
				if took < budget-time.Millisecond || took > budget+late {
					t.Errorf("%s, %s, %s: returned after %v, want %v", name, fault, call, took, budget)
				}
			}
			proxy.Restore()
		}
		await(t, "an answer once the network is back", func() bool { _, err := s.Get(t.Context(), "k"); return err == nil })
	}
}

func TestC46CallersBeyondTheConnectionsWaitWithinTheirContexts(t *testing.T) {
	proxy := servers.Proxy(t, servers.Memcached(t).Addr())
	s := open(t, memcached.Options{Servers: []string{proxy.Addr()}, MaxConnections: 2, Timeout: 300 * time.Millisecond})
	set(t, s, "k", "v", time.Minute)
	proxy.BlackHole()
	before := runtime.NumGoroutine()
	for round := range 3 {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
				defer cancel()
				begun := time.Now()
				if _, err := s.Get(ctx, "k"); err == nil {
					t.Error("got an answer out of a black hole")
				}
				if took := time.Since(begun); took > 25*time.Millisecond+late {
					t.Errorf("round %d: returned after %v", round, took)
				}
			})
		}
		all.Wait()
	}
	// The proxy's own goroutines for two connections are among them.
	if left := runtime.NumGoroutine() - before; left > 20 {
		t.Errorf("150 calls left %d goroutines behind, want a few", left)
	}
	proxy.Restore()
	await(t, "an answer once the network is back", func() bool { _, err := s.Get(t.Context(), "k"); return err == nil })

	var all sync.WaitGroup
	for range 50 { // with time enough all of them get their turn
		all.Go(func() { want(t, s, "k", "v") })
	}
	all.Wait()
}

func TestAServerThatRestarts(t *testing.T) {
	m := servers.Memcached(t)
	s := open(t, memcached.Options{Servers: []string{m.Addr()}})
	set(t, s, "k", "v", time.Minute)
	m.Kill()
	if _, err := s.Get(t.Context(), "k"); err == nil {
		t.Error("got no error from a server that is down")
	}
	m.Start()
	wantNothing(t, s, "k")
	set(t, s, "k", "v", time.Minute)
	m.Kill()
	m.Start() // unnoticed
	wantNothing(t, s, "k")
}

func TestABatchGoesOnWithoutAServerThatIsDown(t *testing.T) {
	up, down := servers.Memcached(t), servers.Memcached(t)
	s := open(t, memcached.Options{Servers: []string{up.Addr(), down.Addr()}})
	const n = 100
	keys, values, ttls := make([]string, n), make([][]byte, n), make([]time.Duration, n)
	for i := range n {
		keys[i], values[i], ttls[i] = fmt.Sprint("key ", i), []byte("v"), time.Minute
	}
	down.Kill()
	if err := s.SetMany(t.Context(), keys, values, ttls); err == nil {
		t.Error("SetMany: got no error")
	} else if len(err.Error()) > 1000 {
		t.Errorf("SetMany: the error has %d bytes", len(err.Error()))
	}
	got, err := s.GetMany(t.Context(), keys)
	if err == nil {
		t.Error("GetMany: got no error")
	}
	found := 0
	for _, value := range got {
		if value != nil {
			found++
		}
	}
	if found < n/4 || found > n*3/4 {
		t.Errorf("found %d of %d keys, want about half", found, n)
	}
}

func TestATooLargeValueLeavesNothingOlder(t *testing.T) {
	addr := servers.Memcached(t).Addr()
	large := []byte(strings.Repeat("x", 2<<20))
	for name, s := range map[string]*memcached.Store{
		"the server's limit": open(t, memcached.Options{Servers: []string{addr}, Prefix: "1:"}),
		"our limit":          open(t, memcached.Options{Servers: []string{addr}, Prefix: "2:", MaxValueSize: 1 << 20}),
	} {
		for _, key := range []string{"k", "a hashed key"} {
			set(t, s, key, "older", time.Minute)
			if err := s.Set(t.Context(), key, large, time.Minute); !errors.Is(err, tier.ErrTooLarge) {
				t.Errorf("%s: Set: got error %v, want tier.ErrTooLarge", name, err)
			} else if len(err.Error()) > 500 {
				t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
			}
			wantNothing(t, s, key)

			set(t, s, key, "older", time.Minute)
			if stored, err := s.SetIf(t.Context(), key, large, time.Minute, []byte("another")); stored || err != nil {
				t.Errorf("%s: SetIf with another head = %v, %v, want false", name, stored, err)
			}
			want(t, s, key, "older")
			if stored, err := s.SetIf(t.Context(), key, large, time.Minute, []byte("older")); stored || !errors.Is(err, tier.ErrTooLarge) {
				t.Errorf("%s: SetIf = %v, %v, want tier.ErrTooLarge", name, stored, err)
			}
			wantNothing(t, s, key)
		}

		// In a batch it is no other key's matter.
		keys := []string{"a", "b", "c", "d", "e", "f"}
		values, ttls := make([][]byte, len(keys)), make([]time.Duration, len(keys))
		for i, key := range keys {
			set(t, s, key, "older", time.Minute)
			values[i], ttls[i] = []byte("new"), time.Minute
		}
		values[0] = large
		if err := s.SetMany(t.Context(), keys, values, ttls); !errors.Is(err, tier.ErrTooLarge) {
			t.Errorf("%s: SetMany: got error %v, want tier.ErrTooLarge", name, err)
		}
		wantNothing(t, s, keys[0])
		for _, key := range keys[1:] {
			want(t, s, key, "new")
		}
	}
}

func TestARejectedWriteLeavesNothingOlder(t *testing.T) {
	addr := servers.Memcached(t, "-m", "8", "-M").Addr() // -M: an error instead of an eviction
	s := open(t, memcached.Options{Servers: []string{addr}})
	set(t, s, "k", "older", time.Minute)
	value := []byte(strings.Repeat("x", 100_000))
	var full error
	for i := 0; full == nil && i < 1000; i++ {
		full = s.Set(t.Context(), fmt.Sprint("filler ", i), value, time.Minute)
	}
	var reply *memcached.ReplyError
	if !errors.As(full, &reply) || !strings.HasPrefix(reply.Reply, "SERVER_ERROR out of memory") {
		t.Fatalf("a full server: got error %v, want a ReplyError", full)
	}
	if errors.Is(full, tier.ErrTooLarge) {
		t.Errorf("%v is a tier.ErrTooLarge", full)
	}
	want(t, s, "k", "older")
	if err := s.Set(t.Context(), "k", value, time.Minute); !errors.As(err, &reply) {
		t.Fatalf("Set: got error %v, want a ReplyError", err)
	}
	wantNothing(t, s, "k")
}

// slowly runs SetIf on an absent key through a slow network and calls arrived once
// the server has the value and the answer is still on its way.
func slowly(t *testing.T, arrived func(proxy *servers.FaultProxy, direct *memcached.Store)) (bool, *memcached.Store, error) {
	t.Helper()
	addr := servers.Memcached(t).Addr()
	proxy := servers.Proxy(t, addr)
	s := open(t, memcached.Options{Servers: []string{proxy.Addr()}, Timeout: 5 * time.Second})
	direct := open(t, memcached.Options{Servers: []string{addr}})
	proxy.Delay(300 * time.Millisecond)
	type result struct {
		stored bool
		err    error
	}
	done := make(chan result, 1)
	go func() {
		stored, err := s.SetIf(t.Context(), "k", []byte("ours"), time.Minute, nil)
		done <- result{stored, err}
	}()
	await(t, "the value is on the server", func() bool {
		got, err := direct.Get(t.Context(), "k")
		return err == nil && string(got) == "ours"
	})
	arrived(proxy, direct)
	r := <-done
	return r.stored, direct, r.err
}

func TestAConditionalWriteWhoseAnswerIsLostKnowsThatItWasMade(t *testing.T) {
	stored, direct, err := slowly(t, func(proxy *servers.FaultProxy, _ *memcached.Store) { proxy.Reset() })
	if !stored || err != nil {
		t.Errorf("SetIf = %v, %v, want true", stored, err)
	}
	want(t, direct, "k", "ours")
}

func TestAConditionalWriteWhoseAnswerIsLostAndThatIsOverwrittenIsAnError(t *testing.T) {
	stored, direct, err := slowly(t, func(proxy *servers.FaultProxy, direct *memcached.Store) {
		set(t, direct, "k", "another's", time.Minute)
		proxy.Reset()
	})
	if stored || err == nil {
		t.Errorf("SetIf = %v, %v, want an error: it cannot be known", stored, err)
	}
	want(t, direct, "k", "another's")
}

// writes is a connection that tells when it is written to.
type writes struct {
	net.Conn
	told chan<- struct{}
}

func (w writes) Write(b []byte) (int, error) {
	w.told <- struct{}{}
	return w.Conn.Write(b)
}

func TestCloseEndsCallsUnderWay(t *testing.T) {
	const connections, callers = 4, 8 // half of the callers wait for a connection
	t.Run("alone", func(t *testing.T) {
		closeUnderWay(t, memcached.Options{MaxConnections: connections, Gather: 1}, callers, connections)
	})
	t.Run("gathered", func(t *testing.T) { closeUnderWay(t, memcached.Options{}, callers, 1) })
}

// closeUnderWay closes a store whose connections were written to so many times, and
// none of whose callers gets an answer.
func closeUnderWay(t *testing.T, o memcached.Options, callers, requests int) {
	proxy := servers.Proxy(t, servers.Memcached(t).Addr())
	asked := make(chan struct{}, callers)
	o.Servers, o.Timeout = []string{proxy.Addr()}, time.Minute
	o.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return writes{Conn: conn, told: asked}, err
	}
	s := open(t, o)
	proxy.BlackHole()
	errs := make(chan error, callers)
	for range callers {
		go func() { _, err := s.Get(context.Background(), "k"); errs <- err }()
	}
	for range requests {
		<-asked
	}
	begun := time.Now()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for range callers {
		if err := <-errs; !errors.Is(err, tier.ErrClosed) {
			t.Errorf("got error %v, want tier.ErrClosed", err)
		}
	}
	if took := time.Since(begun); took > late {
		t.Errorf("Close took %v", took)
	}
}

func TestCloseEndsDialling(t *testing.T) {
	dialling := make(chan struct{})
	s := open(t, memcached.Options{
		Servers: []string{"127.0.0.1:1"},
		Timeout: time.Minute,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			close(dialling)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	failed := make(chan error, 1)
	go func() { _, err := s.Get(context.Background(), "k"); failed <- err }()
	<-dialling
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-failed; !errors.Is(err, tier.ErrClosed) {
		t.Errorf("got error %v, want tier.ErrClosed", err)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	good := []string{"127.0.0.1:11211"}
	for name, o := range map[string]memcached.Options{
		"no servers":       {},
		"no port":          {Servers: []string{"127.0.0.1"}},
		"twice":            {Servers: []string{good[0], good[0]}},
		"connections":      {Servers: good, MaxConnections: -1},
		"timeout":          {Servers: good, Timeout: -1},
		"size":             {Servers: good, MaxValueSize: -1},
		"size above 1 GiB": {Servers: good, MaxValueSize: 1<<30 + 1},
		"prefix":           {Servers: good, Prefix: "a b"},
		"long prefix":      {Servers: good, Prefix: strings.Repeat("x", 101)},
	} {
		if _, err := memcached.Open(o); err == nil || !strings.HasPrefix(err.Error(), "terrace/memcached: ") {
			t.Errorf("%s: Open: got error %v", name, err)
		}
	}
	s := memcached.New(nil)
	if s.Validate() == nil {
		t.Error("a nil client is valid")
	}
	if _, err := s.Get(t.Context(), "k"); err == nil {
		t.Error("a nil client: Get gives no error")
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestOurClientIsClosedAndAnothersIsNot(t *testing.T) {
	addr := servers.Memcached(t).Addr()
	c := memcache.New(addr)
	defer c.Close()
	s := memcached.New(c)
	set(t, s, "k", "v", time.Minute)
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := c.Get("k"); err != nil {
		t.Errorf("the client after the store's Close: %v", err)
	}
}
