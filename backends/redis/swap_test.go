package redis_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

type swapAnswer struct {
	stored bool
	err    error
}

// TestASwapWhoseAnswerIsLost has the server make the write and the network lose the
// answer, with a client that by itself repeats what fails.
func TestASwapWhoseAnswerIsLost(t *testing.T) {
	r := servers.Redis(t)
	admin := client(t, &goredis.Options{Addr: r.Addr()})
	p := servers.Proxy(t, r.Addr())
	s := redis.New(client(t, &goredis.Options{Addr: p.Addr(), MaxRetries: 3, ReadTimeout: time.Minute}))
	defer s.Close()
	// The server knows the script, so that the first request is the write.
	if _, err := s.SetIf(t.Context(), "key", nil, time.Minute, nil); err != nil {
		t.Fatal(err)
	}

	lose := func(ttl time.Duration, made func() bool, then func()) swapAnswer {
		t.Helper()
		mustSet(t, s, "key", "older")
		p.Delay(time.Hour)
		answer := make(chan swapAnswer, 1)
		go func() {
			stored, err := s.SetIf(t.Context(), "key", []byte("newer"), ttl, []byte("older"))
			answer <- swapAnswer{stored, err}
		}()
		for deadline := time.Now().Add(10 * time.Second); !made(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the server does not make the write")
			}
		}
		then()
		p.Reset()
		p.Restore()
		return <-answer
	}
	holds := func(value string) func() bool {
		return func() bool { return admin.Get(t.Context(), "key").Val() == value }
	}

	if got := lose(time.Minute, holds("newer"), func() {}); !got.stored || got.err != nil {
		t.Errorf("got %v, %v; want true: the write was made", got.stored, got.err)
	}
	if got := lose(0, holds(""), func() {}); !got.stored || got.err != nil {
		t.Errorf("a removal: got %v, %v; want true", got.stored, got.err)
	}
	overwrite := func() { admin.Set(t.Context(), "key", "newest", 0) }
	if got := lose(time.Minute, holds("newer"), overwrite); got.stored || got.err == nil {
		t.Errorf("written again meanwhile: got %v, %v; want an error, since nobody can tell", got.stored, got.err)
	}
	wantValue(t, s, "key", "newest")
}

func TestOfManySwapsOfOneVersionOneIsMade(t *testing.T) {
	const stores, rounds = 32, 20
	addr := servers.Redis(t).Addr()
	admin := client(t, &goredis.Options{Addr: addr})
	all := make([]*redis.Store, stores)
	for i := range all {
		all[i] = open(t, "redis://"+addr+"?pool_size=1", redis.Options{})
	}
	head := []byte(nil)
	for round := range rounds {
		if round == rounds/2 {
			admin.ScriptFlush(t.Context())
		}
		var made atomic.Int32
		var winner atomic.Pointer[[]byte]
		var callers sync.WaitGroup
		for i, s := range all {
			callers.Go(func() {
				value := fmt.Appendf(nil, "round %2d store %2d, and more", round, i)
				stored, err := s.SetIf(t.Context(), "key", value, time.Minute, head)
				if err != nil {
					t.Errorf("SetIf: %v", err)
				}
				if stored {
					made.Add(1)
					winner.Store(&value)
				}
			})
		}
		callers.Wait()
		if made.Load() != 1 {
			t.Fatalf("round %d: %d of %d swaps were made, want 1", round, made.Load(), stores)
		}
		wantValue(t, all[0], "key", string(*winner.Load()))
		// The head is 16 bytes, which end before the stores' numbers differ.
		head = (*winner.Load())[:16]
	}
}

// The rights that docs/backends-remote.md names.
var rights = []any{"+get", "+mget", "+set", "+del", "+eval", "+evalsha", "+getrange", "+scan", "+unlink", "+hello", "+client"}

func TestTheRightsThatAUserNeeds(t *testing.T) {
	addr := servers.Redis(t).Addr()
	admin := client(t, &goredis.Options{Addr: addr})
	as := func(user string, rights ...any) *redis.Store {
		t.Helper()
		if err := admin.Do(t.Context(), append([]any{"acl", "setuser", user, "on", ">pw", "~p:*"}, rights...)...).Err(); err != nil {
			t.Fatal(err)
		}
		return open(t, "redis://"+user+":pw@"+addr, redis.Options{Prefix: "p:"})
	}

	s := as("cache", rights...)
	mustSet(t, s, "key", "value")
	wantValue(t, s, "key", "value")
	_, getErr := s.GetMany(t.Context(), []string{"key"})
	_, swapErr := s.SetIf(t.Context(), "key", []byte("new"), time.Minute, []byte("value"))
	if err := errors.Join(getErr, swapErr,
		s.SetMany(t.Context(), []string{"key"}, [][]byte{nil}, []time.Duration{time.Minute}),
		s.DeleteMany(t.Context(), []string{"key"}), s.Delete(t.Context(), "key"), s.Clear(t.Context())); err != nil {
		t.Error(err)
	}

	reader := as("reader", "+get", "+hello", "+client")
	if _, err := reader.Get(t.Context(), "key"); err != nil {
		t.Errorf("Get: %v", err)
	}
	_, swapErr = reader.SetIf(t.Context(), "key", nil, time.Minute, nil)
	for _, err := range []error{swapErr, reader.Set(t.Context(), "key", nil, time.Minute)} {
		var reply goredis.Error
		if !goredis.IsPermissionError(err) || !errors.As(err, &reply) {
			t.Errorf("got error %v, want Redis's NOPERM", err)
		}
	}
}
