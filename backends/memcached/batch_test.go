package memcached_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

func TestC53KeysAloneAndInABatchWithGoodOnes(t *testing.T) {
	list := []string{"", " ", "a b", "\n", strings.Repeat("x", 250), strings.Repeat("x", 251), strings.Repeat("日", 84)}
	addr := servers.Memcached(t).Addr()
	for _, prefix := range []string{"", "p", strings.Repeat("p", 100)} { // "p" and 250 bytes make 251
		s := open(t, memcached.Options{Servers: []string{addr}, Prefix: prefix})
		keys := []string{"good"}
		for _, key := range list {
			keys = append(keys, key, "good "+fmt.Sprint(len(keys)))
		}
		values := make([][]byte, len(keys))
		for i, key := range keys {
			set(t, s, key, "alone "+fmt.Sprint(i), time.Minute)
			values[i] = []byte("many " + fmt.Sprint(i))
		}
		for i, key := range keys {
			want(t, s, key, "alone "+fmt.Sprint(i))
		}
		if err := s.SetMany(t.Context(), keys, values, slices.Repeat([]time.Duration{time.Minute}, len(keys))); err != nil {
			t.Errorf("prefix %q: SetMany: %v", prefix, err)
		}
		got, err := s.GetMany(t.Context(), keys)
		if err != nil {
			t.Errorf("prefix %q: GetMany: %v", prefix, err)
		}
		for i := range keys {
			if string(got[i]) != string(values[i]) {
				t.Errorf("prefix %q: key %.20q is %q in a batch, want %q", prefix, keys[i], got[i], values[i])
			}
		}
	}
}

func TestBatchOf100000Keys(t *testing.T) {
	const n = 100_000
	s := open(t, memcached.Options{Servers: []string{servers.Memcached(t, "-m", "256").Addr(), servers.Memcached(t, "-m", "256").Addr()}})
	keys, values := make([]string, n), make([][]byte, n)
	for i := range keys {
		keys[i], values[i] = fmt.Sprintf("key %d", i), fmt.Append(nil, i) // hashed, for the space
		if i%2 == 0 {
			keys[i] = fmt.Sprint(i)
		}
	}
	if err := s.SetMany(t.Context(), keys, values, slices.Repeat([]time.Duration{time.Hour}, n)); err != nil {
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
}

// TestABatchHasWhatOthersAnswered: one server that is slow, or silent, takes nothing of the
// others' from it.
func TestABatchHasWhatOthersAnswered(t *testing.T) {
	for name, fail := range map[string]func(*servers.FaultProxy){
		"slow":   func(p *servers.FaultProxy) { p.Delay(200 * time.Millisecond) },
		"silent": (*servers.FaultProxy).BlackHole,
	} {
		t.Run(name, func(t *testing.T) {
			proxy := servers.Proxy(t, servers.Memcached(t).Addr())
			addrs := []string{proxy.Addr(), servers.Memcached(t).Addr(), servers.Memcached(t).Addr()}
			s := open(t, memcached.Options{Servers: addrs})
			var all []string
			for _, of := range keysByServer(t, 20, addrs...) {
				for _, key := range of {
					set(t, s, key, "value", time.Hour)
				}
				all = append(all, of...)
			}
			fail(proxy)
			for range 5 {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				values, err := s.GetMany(ctx, all)
				cancel()
				n := 0
				for _, v := range values {
					if v != nil {
						n++
					}
				}
				if n != 40 || err == nil || tier.IsOutage(err) {
					t.Errorf("got %d values, want the 40 of two servers; error %v", n, err)
				}
			}
		})
	}
}

// TestABatchLeavesASilentServerOut: it is asked once, and not for each part of a large batch.
func TestABatchLeavesASilentServerOut(t *testing.T) {
	asked := 0
	s := open(t, memcached.Options{Servers: []string{"127.0.0.1:1"}, DialContext: func(context.Context, string, string) (net.Conn, error) {
		asked++
		return nil, errors.New("refused")
	}})
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
	}
	if _, err := s.GetMany(t.Context(), keys); err == nil {
		t.Error("an answer from nowhere")
	}
	if asked != 1 {
		t.Errorf("the server was asked %d times", asked)
	}
}
