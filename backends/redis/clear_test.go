package redis_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

func TestC43ClearTakesItsOwnKeysOnly(t *testing.T) {
	addr := servers.Redis(t).Addr()
	db0 := client(t, &goredis.Options{Addr: addr})
	db3 := client(t, &goredis.Options{Addr: addr, DB: 3})
	const n = 2500
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	for _, mine := range []string{"p:", "*", "?", "[a-z]", `\`, `\*`, "p[", "p]", "^", "{tag}:", "\x00", "日:", "a b\n", "\xff"} {
		s := open(t, "redis://"+addr, redis.Options{Prefix: mine})
		foreign := []string{"", "q", "q:key", "P:key", "xp:", "ap", "a", "x", "aa", "x" + mine + "key"}
		for _, key := range foreign {
			if err := errors.Join(db0.Set(t.Context(), key, "foreign", 0).Err(), db3.Set(t.Context(), mine+key, "foreign", 0).Err()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.SetMany(t.Context(), keys, slices.Repeat([][]byte{[]byte("mine")}, n), slices.Repeat([]time.Duration{time.Minute}, n)); err != nil {
			t.Fatal(err)
		}
		mustSet(t, s, "", "mine")
		if err := s.Clear(t.Context()); err != nil {
			t.Fatalf("prefix %q: Clear: %v", mine, err)
		}
		wantNothing(t, s, "")
		for _, key := range foreign {
			for db, c := range map[string]*goredis.Client{key: db0, mine + key: db3} {
				if got, err := c.Get(t.Context(), db).Result(); got != "foreign" {
					t.Errorf("prefix %q: Clear took %q of others: %v", mine, db, err)
				}
			}
		}
		if got, err := db0.DBSize(t.Context()).Result(); got != int64(len(foreign)) || err != nil {
			t.Errorf("prefix %q: %d keys are left in the database, %v; want the %d of others", mine, got, err, len(foreign))
		}
		if err := errors.Join(db0.FlushDB(t.Context()).Err(), db3.FlushDB(t.Context()).Err()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestC43WithoutAPrefixThereIsNoClear(t *testing.T) {
	c := client(t, &goredis.Options{Addr: servers.Redis(t).Addr()})
	s := redis.New(c)
	if _, ok := tier.AsClearer(s); ok {
		t.Error("the store says that it can be cleared")
	}
	mustSet(t, s, "key", "value")
	if err := s.Clear(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Clear: got error %v, want errors.ErrUnsupported", err)
	}
	wantValue(t, s, "key", "value")
	if _, ok := tier.AsClearer(redis.NewWith(c, redis.Options{Prefix: "p"})); !ok {
		t.Error("with a prefix the store says that it cannot be cleared")
	}
}

func TestBatchOf100000Keys(t *testing.T) {
	const n = 100_000
	s := open(t, "redis://"+servers.Redis(t).Addr(), redis.Options{Prefix: "p:"})
	keys, values, ttls := make([]string, n), make([][]byte, n), make([]time.Duration, n)
	for i := range keys {
		keys[i], values[i], ttls[i] = fmt.Sprint("key ", i), fmt.Append(nil, i), time.Minute
	}
	if err := s.SetMany(t.Context(), keys, values, ttls); err != nil {
		t.Fatal(err)
	}
	got, err := s.GetMany(t.Context(), keys)
	if err != nil || len(got) != n {
		t.Fatalf("%d values, %v", len(got), err)
	}
	for i := range got {
		if string(got[i]) != string(values[i]) {
			t.Fatalf("value %d is %q", i, got[i])
		}
	}
	if err := s.DeleteMany(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	wantNothing(t, s, keys[n-1])

	if err := s.SetMany(t.Context(), keys[:2], values[:1], ttls[:2]); err == nil {
		t.Error("SetMany of 2 keys and 1 value: no error")
	}
}
