package redis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

func mustSet(t *testing.T, s *redis.Store, key, value string) {
	t.Helper()
	if err := s.Set(t.Context(), key, []byte(value), time.Minute); err != nil {
		t.Fatalf("Set(%q): %v", key, err)
	}
}

func wantValue(t *testing.T, s *redis.Store, key, want string) {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	if err != nil || got == nil || string(got) != want {
		t.Errorf("Get(%q) = %q, %v; want %q", key, got, err, want)
	}
}

func wantNothing(t *testing.T, s *redis.Store, key string) {
	t.Helper()
	if got, err := s.Get(t.Context(), key); err != nil || got != nil {
		t.Errorf("Get(%q) = %q, %v; want nil", key, got, err)
	}
}

func TestC57AKeyOfAnotherTypeIsUnreadableAndIsOverwritten(t *testing.T) {
	addr := servers.Redis(t).Addr()
	admin := client(t, &goredis.Options{Addr: addr})
	s := open(t, "redis://"+addr, redis.Options{Prefix: "p:"})
	occupy := func() {
		t.Helper()
		if err := errors.Join(admin.Del(t.Context(), "p:key").Err(), admin.RPush(t.Context(), "p:key", "item").Err()); err != nil {
			t.Fatal(err)
		}
	}

	occupy()
	if got, err := s.Get(t.Context(), "key"); got != nil || !errors.Is(err, tier.ErrUnreadable) {
		t.Errorf("Get = %q, %v; want nil, tier.ErrUnreadable", got, err)
	}
	mustSet(t, s, "other", "good")
	got, err := s.GetMany(t.Context(), []string{"key", "other"})
	if err != nil || got[0] != nil || string(got[1]) != "good" {
		t.Errorf("GetMany = %q, %v; want nil, good", got, err)
	}
	mustSet(t, s, "key", "new")
	wantValue(t, s, "key", "new")

	occupy()
	if stored, err := s.SetIf(t.Context(), "key", []byte("new"), time.Minute, []byte("head")); stored || err != nil {
		t.Errorf("SetIf of another head = %v, %v; want false", stored, err)
	}
	if stored, err := s.SetIf(t.Context(), "key", []byte("new"), time.Minute, nil); !stored || err != nil {
		t.Errorf("SetIf of the empty head = %v, %v; want true", stored, err)
	}
	wantValue(t, s, "key", "new")

	occupy()
	if err := s.SetMany(t.Context(), []string{"key"}, [][]byte{[]byte("many")}, []time.Duration{time.Minute}); err != nil {
		t.Errorf("SetMany: %v", err)
	}
	wantValue(t, s, "key", "many")
}

// rejecting has the server refuse writes that take memory.
func rejecting(t *testing.T, admin *goredis.Client, on bool) {
	t.Helper()
	limit := "0"
	if on {
		limit = "1"
	}
	if err := admin.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestC49ARejectedWriteLeavesNothingOlder(t *testing.T) {
	addr := servers.Redis(t).Addr()
	admin := client(t, &goredis.Options{Addr: addr})
	s := open(t, "redis://"+addr, redis.Options{})
	for _, key := range []string{"a", "b", "c", "swapped", "kept"} {
		mustSet(t, s, key, "older")
	}
	mustSet(t, s, "warm", "") // the script, too, must be known before memory runs out
	if _, err := s.SetIf(t.Context(), "warm", []byte("x"), time.Minute, nil); err != nil {
		t.Fatal(err)
	}

	rejecting(t, admin, true)
	const private = "a value that is nobody's business"
	err := s.Set(t.Context(), "a", []byte(private), time.Minute)
	wantOOM(t, "Set", err)
	many := s.SetMany(t.Context(), []string{"b", "c"}, [][]byte{[]byte(private), []byte(private)}, []time.Duration{time.Minute, time.Minute})
	wantOOM(t, "SetMany", many)
	stored, err := s.SetIf(t.Context(), "swapped", []byte(private), time.Minute, []byte("older"))
	wantOOM(t, "SetIf", err)
	if stored {
		t.Error("SetIf says that it stored")
	}
	if stored, err := s.SetIf(t.Context(), "kept", []byte(private), time.Minute, []byte("another")); stored || err != nil {
		t.Errorf("SetIf whose condition does not hold = %v, %v; want false", stored, err)
	}
	rejecting(t, admin, false)
	for _, key := range []string{"a", "b", "c", "swapped"} {
		wantNothing(t, s, key)
	}
	wantValue(t, s, "kept", "older")
}

func wantOOM(t *testing.T, what string, err error) {
	t.Helper()
	var reply goredis.Error
	if !errors.As(err, &reply) || !goredis.IsOOMError(err) {
		t.Errorf("%s: got error %v, want Redis's OOM", what, err)
		return
	}
	if kind := tier.FailureKind(err); kind != "OOM" || tier.IsOutage(err) {
		t.Errorf("%s: kind %q, outage %v; want OOM, which is none", what, kind, tier.IsOutage(err))
	}
	if strings.Contains(err.Error(), "private") || strings.Contains(err.Error(), "nobody") {
		t.Errorf("%s: the value is in %q", what, err)
	}
	if n := strings.Count(err.Error(), "OOM"); n != 1 {
		t.Errorf("%s: says %d times that memory is out: %q", what, n, err)
	}
}

func TestC49AReplicaThatTakesNoWritesSaysSo(t *testing.T) {
	t.Parallel() // it waits for the replica
	master := servers.Redis(t)
	replica := servers.RedisReplica(t, master)
	s := open(t, "redis://"+replica.Addr(), redis.Options{})
	for name, err := range map[string]error{
		"Set":     s.Set(t.Context(), "key", []byte("value"), time.Minute),
		"SetMany": s.SetMany(t.Context(), []string{"key"}, [][]byte{nil}, []time.Duration{time.Minute}),
		"Delete":  s.Delete(t.Context(), "key"),
		"SetIf":   func() error { _, err := s.SetIf(t.Context(), "key", nil, time.Minute, nil); return err }(),
	} {
		if !goredis.IsReadOnlyError(err) {
			t.Errorf("%s: got error %v, want Redis's READONLY", name, err)
		}
		if kind := tier.FailureKind(err); kind != "READONLY" || tier.IsOutage(err) {
			t.Errorf("%s: kind %q, outage %v; want READONLY, which is none: it can be read", name, kind, tier.IsOutage(err))
		}
	}
	wantNothing(t, s, "key")
}

func TestAValueLargerThanRedisTakesIsNotSent(t *testing.T) {
	s := open(t, "redis://"+servers.Redis(t).Addr(), redis.Options{})
	large := make([]byte, 512<<20+1)
	mustSet(t, s, "key", "older")
	if err := s.Set(t.Context(), "key", large, time.Minute); !errors.Is(err, tier.ErrTooLarge) {
		t.Errorf("Set: got error %v, want tier.ErrTooLarge", err)
	}
	wantNothing(t, s, "key")
	mustSet(t, s, "key", "older")
	if stored, err := s.SetIf(t.Context(), "key", large, time.Minute, []byte("another")); stored || err != nil {
		t.Errorf("SetIf whose condition does not hold = %v, %v; want false", stored, err)
	}
	wantValue(t, s, "key", "older")
	if stored, err := s.SetIf(t.Context(), "key", large, time.Minute, []byte("older")); stored || !errors.Is(err, tier.ErrTooLarge) {
		t.Errorf("SetIf = %v, %v; want false, tier.ErrTooLarge", stored, err)
	}
	wantNothing(t, s, "key")
}

func TestC19TTLsReachRedisAsTheyAre(t *testing.T) {
	addr := servers.Redis(t).Addr()
	admin := client(t, &goredis.Options{Addr: addr})
	s := open(t, "redis://"+addr, redis.Options{})
	const day = 24 * time.Hour
	for _, c := range []struct{ ttl, want time.Duration }{
		{30 * day, 30 * day},
		{30*day + time.Second, 30*day + time.Second},
		{400 * day, 400 * day},
		{time.Hour + 1, time.Hour + time.Millisecond},
		{time.Hour + 1500*time.Microsecond, time.Hour + 2*time.Millisecond},
		{69 * 365 * day, 69 * 365 * day},
		{tier.Forever - 1, tier.Forever / time.Millisecond * time.Millisecond},
		{tier.Forever, 0},
	} {
		set := map[string]func() error{
			"Set":     func() error { return s.Set(t.Context(), "key", []byte("value"), c.ttl) },
			"SetMany": func() error { return s.SetMany(t.Context(), []string{"key"}, [][]byte{nil}, []time.Duration{c.ttl}) },
			"SetIf": func() error {
				_, err := s.SetIf(t.Context(), "key", []byte("value"), c.ttl, nil)
				return err
			},
		}
		for name, write := range set {
			if err := s.Delete(t.Context(), "key"); err != nil {
				t.Fatal(err)
			}
			if err := write(); err != nil {
				t.Errorf("%s, ttl %v: %v", name, c.ttl, err)
				continue
			}
			left, err := admin.Do(t.Context(), "pttl", "key").Int64()
			if err != nil {
				t.Fatal(err)
			}
			if c.want == 0 {
				if left != -1 {
					t.Errorf("%s, ttl Forever: Redis has %d ms left, want no expiry", name, left)
				}
				continue
			}
			if want := c.want.Milliseconds(); left > want || left < want-5000 {
				t.Errorf("%s, ttl %v: Redis has %d ms left, want %d", name, c.ttl, left, want)
			}
		}
	}
	// Below a millisecond: not for ever, and not an error.
	if err := s.Set(t.Context(), "short", []byte("value"), 1); err != nil {
		t.Errorf("ttl 1ns: %v", err)
	}
	if left, err := admin.Do(t.Context(), "pttl", "short").Int64(); err != nil || left == -1 || left > 1 {
		t.Errorf("ttl 1ns: Redis has %d ms left, %v", left, err)
	}
}

// A server that serves nobody, or not us, is an outage; its replies are counted by kind.
func TestOutagesOfWhatAnswers(t *testing.T) {
	server := servers.Redis(t, "--requirepass", "right")
	for _, test := range []struct{ url, kind string }{
		{"redis://" + server.Addr(), "NOAUTH"},
		{"redis://:wrong@" + server.Addr(), "WRONGPASS"},
	} {
		s := open(t, test.url, redis.Options{})
		_, err := s.Get(t.Context(), "key")
		if kind := tier.FailureKind(err); kind != test.kind || !tier.IsOutage(err) {
			t.Errorf("%v: kind %q, outage %v; want %s, which is one", err, kind, tier.IsOutage(err), test.kind)
		}
		if strings.Contains(err.Error(), "wrong@") || strings.Contains(err.Error(), ":wrong") {
			t.Errorf("the password is in %q", err)
		}
	}
}

// A command that the server does not know is answered with its arguments.
func TestRepliesQuoteNoValues(t *testing.T) {
	const value = "s3cr3t-value"
	server := servers.Redis(t, "--rename-command", "SET", "", "--rename-command", "EVALSHA", "", "--rename-command", "EVAL", "")
	s := open(t, "redis://"+server.Addr(), redis.Options{Prefix: "p:"})
	_, swapErr := s.SetIf(t.Context(), "key", []byte(value), time.Minute, []byte(value))
	for what, err := range map[string]error{
		"Set":     s.Set(t.Context(), "key", []byte(value), time.Minute),
		"SetMany": s.SetMany(t.Context(), []string{"key"}, [][]byte{[]byte(value)}, []time.Duration{time.Minute}),
		"SetIf":   swapErr,
	} {
		if err == nil || strings.Contains(err.Error(), value) || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("%s: %v, want that the command is not known, and no value", what, err)
		}
	}
}
