package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/internal/readtest"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// overLine reads over the line, and reports false where there is none.
func overLine(ctx context.Context, s tier.Bytes, key string) bool {
	_, ok, err := s.(*Store).line.Read(ctx, s.(*Store).key(key))
	return ok && err == nil
}

func opened(t testing.TB, url string, o Options) *Store {
	t.Helper()
	s, err := Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestReadsThatAreAlone(t *testing.T) {
	server := servers.Redis(t)
	for name, parameters := range map[string]string{"RESP3": "", "RESP2": "&protocol=2"} {
		t.Run(name, func(t *testing.T) {
			readtest.Lone{
				Upstream: server.Addr(),
				Open: func(t testing.TB, addr string) tier.Bytes {
					return opened(t, "redis://"+addr+"?read_timeout=5s"+parameters, Options{Prefix: "p:"})
				},
				Read: overLine,
			}.Test(t)
		})
	}
}

// A read that is alone has the rights, the database and the errors of others.
func TestReadsThatAreAloneAreLikeOthers(t *testing.T) {
	server := servers.Redis(t)
	raw := redis.NewClient(&redis.Options{Addr: server.Addr(), DB: 3})
	defer raw.Close()
	if err := raw.Do(t.Context(), "acl", "setuser", "reader", "on", ">secret", "~*", "+@all", "-ping").Err(); err != nil {
		t.Fatal(err)
	}
	if err := raw.HSet(t.Context(), "hash", "f", "v").Err(); err != nil {
		t.Fatal(err)
	}
	s := opened(t, "redis://reader:secret@"+server.Addr()+"/3", Options{})
	if err := s.Set(t.Context(), "k", []byte("value"), time.Minute); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); !overLine(t.Context(), s, "k"); {
		if got, err := s.Get(t.Context(), "k"); string(got) != "value" || err != nil || time.Since(begun) > 5*time.Second {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if _, err := s.Get(t.Context(), "hash"); !errors.Is(err, tier.ErrUnreadable) {
		t.Errorf("a hash: %v, want tier.ErrUnreadable", err)
	}
	if err := raw.Do(t.Context(), "acl", "setuser", "reader", "-get").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "k"); tier.FailureKind(err) != "NOPERM" {
		t.Errorf("without the right to: %v, want NOPERM", err)
	}
	if err := raw.Do(t.Context(), "acl", "setuser", "reader", "+get").Err(); err != nil {
		t.Fatal(err)
	}
	standing(t, s)
}

// There is none where another connection than that to one server would be used, or more than
// was allowed.
func TestWhereReadsAreNeverAlone(t *testing.T) {
	for _, url := range []string{
		"redis+cluster://127.0.0.1:1", "redis+sentinel://127.0.0.1:1?master_name=m",
		"redis://127.0.0.1:1?pool_size=1", "redis://127.0.0.1:1?max_active_conns=1",
	} {
		if opened(t, url, Options{}).line != nil {
			t.Errorf("%s: has a line", url)
		}
	}
	for name, o := range map[string]Options{"nothing gathered": {Gather: 1}, "one call": {MaxCalls: 1}} {
		if opened(t, "redis://127.0.0.1:1", o).line != nil {
			t.Errorf("%s: has a line", name)
		}
	}
	s := opened(t, "redis://127.0.0.1:1?pool_size=5&max_active_conns=7", Options{})
	if o := s.client.(*redis.Client).Options(); s.line == nil || o.PoolSize != 4 || o.MaxActiveConns != 6 {
		t.Errorf("line %v, %d and %d connections beside it, want 4 and 6", s.line, o.PoolSize, o.MaxActiveConns)
	}
}

// standing reads until there is a line.
func standing(t *testing.T, s *Store) {
	t.Helper()
	for begun := time.Now(); !overLine(t.Context(), s, "k"); {
		if _, err := s.Get(t.Context(), "k"); err != nil || time.Since(begun) > 5*time.Second {
			t.Fatalf("no line, %v", err)
		}
	}
}

func wantEcho(t *testing.T, s *Store, key string) {
	t.Helper()
	if got, err := s.Get(t.Context(), key); string(got) != key || err != nil {
		t.Errorf("Get(%q): %q, %v", key, got, err)
	}
}

// What comes while nobody asks is not taken for an answer.
func TestNobodyGetsWhatNobodyAskedFor(t *testing.T) {
	server := serveRESP(t, func(_ int, key string) string { return bulk(key) })
	for _, text := range []string{bulk("wrong"), "-ERR something\r\n", "+OK\r\n", ":1\r\n"} {
		s := opened(t, "redis://"+server.Addr().String(), Options{})
		standing(t, s)
		server.each(func(c net.Conn) { _, _ = io.WriteString(c, text) })
		conn, err := net.Dial("tcp", server.Addr().String()) // what was written before has come then
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		for i := range 4 {
			wantEcho(t, s, fmt.Sprint("key", i))
		}
	}
}

// What go-redis tries again where reads are not alone is tried again where they are.
func TestAReadThatIsAloneIsTriedAgain(t *testing.T) {
	for name, fault := range map[string]string{
		"loading": "-LOADING Redis is loading the dataset in memory\r\n",
		"silence": "",
	} {
		var faults, reads atomic.Int64
		server := serveRESP(t, func(_ int, key string) string {
			reads.Add(1)
			if faults.Add(-1) >= 0 {
				return fault
			}
			return bulk(key)
		})
		s := opened(t, "redis://"+server.Addr().String()+"?read_timeout=100ms", Options{})
		standing(t, s)
		faults.Store(1)
		wantEcho(t, s, "k")
		if faults.Load() >= 0 {
			t.Errorf("%s: there was no fault", name)
		}
	}
}

// A connection whose life is over is replaced, which no caller notices.
func TestTheLifeOfALine(t *testing.T) {
	server := serveRESP(t, func(_ int, key string) string { return bulk(key) })
	var dials atomic.Int64
	s, err := OpenClient(&redis.UniversalOptions{
		Addrs: []string{server.Addr().String()}, ConnMaxLifetime: 50 * time.Millisecond, DialerRetries: 10,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	standing(t, s)
	used, before := true, int64(0)
	for begun := time.Now(); used && time.Since(begun) < 5*time.Second; {
		before = dials.Load()
		used = overLine(t.Context(), s, "k")
	}
	if used || dials.Load() != before {
		t.Error("a connection whose life is over is used, or made anew by a reader")
	}
	for i := range 10 {
		wantEcho(t, s, fmt.Sprint(i))
	}
	standing(t, s)
}

// Close waits for nothing that a user's code waits for in a new connection.
func TestCloseWhileALineConnects(t *testing.T) {
	server := serveRESP(t, func(_ int, key string) string { return bulk(key) })
	waits := make(chan struct{})
	var calls atomic.Int64
	s, err := OpenClient(&redis.UniversalOptions{
		Addrs: []string{server.Addr().String()},
		CredentialsProviderContext: func(ctx context.Context) (string, string, error) {
			if calls.Add(1) == 2 {
				close(waits)
				<-ctx.Done()
			}
			return "", "", ctx.Err()
		},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantEcho(t, s, "k")
	<-waits
	begun := time.Now()
	if err := s.Close(); err != nil || time.Since(begun) > drainWithin/2 {
		t.Errorf("Close: %v after %v", err, time.Since(begun))
	}
}

// unknown is a connection of which it is not known whether a deadline ends what is under way.
type unknown struct{ net.Conn }

func TestAnothersDialerHasNoReadsMadeByTheirCallers(t *testing.T) {
	server := servers.Redis(t)
	s, err := OpenClient(&redis.UniversalOptions{
		Addrs: []string{server.Addr()},
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return unknown{conn}, err
		},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 100 {
		if _, err := s.Get(t.Context(), "k"); err != nil || overLine(t.Context(), s, "k") {
			t.Fatalf("%v, or a read on a connection that may not end", err)
		}
	}
}
