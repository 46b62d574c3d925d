package redis_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

const secret = "s3cr/t:p@ss#word"

func TestOpenAuthenticates(t *testing.T) {
	r := servers.Redis(t, "--requirepass", secret)
	admin := client(t, &goredis.Options{Addr: r.Addr(), Password: secret})
	if err := admin.Do(t.Context(), "acl", "setuser", "cache", "on", ">"+secret, "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	escaped := "s3cr%2Ft%3Ap%40ss%23word"
	for _, url := range []string{
		"redis://:" + escaped + "@" + r.Addr(),
		"redis://cache:" + escaped + "@" + r.Addr() + "/3?pool_size=2",
	} {
		s := open(t, url, redis.Options{})
		if err := s.Set(t.Context(), "key", []byte("value"), tier.Forever); err != nil {
			t.Errorf("%v", err)
		}
	}
	if got, err := admin.Exists(t.Context(), "key").Result(); got != 1 || err != nil {
		t.Errorf("database 0 has %d keys, %v; want 1", got, err)
	}

	universal, err := redis.OpenClient(&goredis.UniversalOptions{Addrs: []string{r.Addr()}, Password: secret}, redis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer universal.Close()
	if got, err := universal.Get(t.Context(), "key"); string(got) != "value" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}

	wrong := open(t, "redis://cache:wrong-"+escaped+"@"+r.Addr(), redis.Options{})
	_, err = wrong.Get(t.Context(), "key")
	if !goredis.IsAuthError(err) {
		t.Errorf("got error %v, want one of authentication", err)
	}
	for _, text := range []string{fmt.Sprint(err), fmt.Sprintf("%v %+v %#v %s", wrong, wrong, wrong, wrong)} {
		if strings.Contains(text, "s3cr") {
			t.Errorf("the password is in %q", text)
		}
	}
}

func TestOpenByASocket(t *testing.T) {
	// A path of its own, since t.TempDir's may be longer than a socket's may be.
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "redis.sock")
	servers.Redis(t, "--unixsocket", path, "--requirepass", "password")
	s := open(t, "unix://:password@"+path+"?db=1", redis.Options{})
	mustSet(t, s, "key", "value")
	wantValue(t, s, "key", "value")
}

func TestOpenRefusesAndTellsNoPassword(t *testing.T) {
	for _, url := range []string{
		"", "localhost:6379", "http://user:" + "s3cret" + "@host", "redis+magic://:s3cret@host", "unix+cluster://:s3cret@/path",
		"redis://user:s3cret/x@host:6379", "redis://user:s3cret%zz@host", "redis://:s3cret@host:port/0", "redis://:s3cret@host/database",
		"redis://:s3cret@host?no_such_option=s3cret", "redis://:s3cret@host/s3cret", "redis://:s3cret@host?dial_timeout=s3cret",
		"redis+cluster://:s3cret@host/1", "redis+cluster://:s3cret@host?addr=s3cret",
		"redis+sentinel://:s3cret@host", "redis+sentinel://host?master_name=m&sentinel_password=s3cret&addr=s3cret",
		"unix://:s3cret@", "redis://h?password=s3cret",
	} {
		s, err := redis.Open(url, redis.Options{})
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", url)
			continue
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password is in %q", url, err)
		}
	}
	if _, err := redis.Open("redis://localhost", redis.Options{MaxCalls: -1}); err == nil {
		t.Error("MaxCalls -1: no error")
	}
	if _, err := redis.OpenClient(nil, redis.Options{}); err == nil {
		t.Error("no client options: no error")
	}
}

func TestOpenLeavesTheCallersOptionsAlone(t *testing.T) {
	o := &goredis.UniversalOptions{Addrs: []string{"localhost:1"}}
	s, err := redis.OpenClient(o, redis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if o.ContextTimeoutEnabled || o.DialTimeout != 0 || o.MaxRetries != 0 {
		t.Errorf("they have become %+v", o)
	}
}

func TestAnUnreachableServerIsGivenUpSoon(t *testing.T) {
	// A server that takes connections and says nothing, with no context to end it.
	p := servers.Proxy(t, servers.Redis(t).Addr())
	p.BlackHole()
	s := open(t, "redis://"+p.Addr(), redis.Options{})
	start := time.Now()
	if _, err := s.Get(t.Context(), "key"); err == nil {
		t.Error("no error")
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	// And one that refuses them.
	p.Cut()
	start = time.Now()
	if err := s.Set(t.Context(), "key", nil, tier.Forever); err == nil {
		t.Error("no error")
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("refused: it took %v", took)
	}
}

func TestAStoreThatIsMadeWronglySaysSo(t *testing.T) {
	for name, s := range map[string]*redis.Store{
		"nil":       redis.New(nil),
		"typed nil": redis.New((*goredis.Client)(nil)),
		"options":   redis.NewWith(client(t, &goredis.Options{}), redis.Options{MaxValueSize: -1}),
	} {
		want := s.Validate()
		if want == nil {
			t.Fatalf("%s: Validate: no error", name)
		}
		_, err := s.Get(t.Context(), "key")
		_, manyErr := s.GetMany(t.Context(), []string{"key"})
		_, setIfErr := s.SetIf(t.Context(), "key", nil, 1, nil)
		for _, err := range []error{err, manyErr, setIfErr, s.Set(t.Context(), "key", nil, 1), s.Delete(t.Context(), "key"), s.Clear(t.Context())} {
			if !errors.Is(err, want) {
				t.Errorf("%s: got error %v, want %v", name, err, want)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

func TestCloseLeavesAnothersClientOpen(t *testing.T) {
	c := client(t, &goredis.Options{Addr: servers.Redis(t).Addr()})
	s := redis.New(c)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the client after the store's Close: %v", err)
	}
	// The other way round the store says what is the matter.
	s = redis.New(c)
	c.Close()
	if _, err := s.Get(t.Context(), "key"); !errors.Is(err, tier.ErrClosed) {
		t.Errorf("a store whose client is closed: got error %v, want tier.ErrClosed", err)
	}
}
