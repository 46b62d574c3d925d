package redis

import (
	"context"
	"errors"
	"net"
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
	if !overLine(t.Context(), s, "k") {
		t.Error("an error of the server has lost the connection")
	}
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
