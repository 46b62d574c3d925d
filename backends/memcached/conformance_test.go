package memcached_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
	"go.uber.org/goleak"

	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var prefixes atomic.Int64

// prefix returns one that no other store has.
func prefix() string { return fmt.Sprintf("%d:", prefixes.Add(1)) }

func open(t testing.TB, o memcached.Options) *memcached.Store {
	t.Helper()
	s, err := memcached.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	const largest = 1 << 20 // of an item, unless the server is told otherwise
	one, other := servers.Memcached(t).Addr(), servers.Memcached(t).Addr()
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		storetest.TestBytesWith(t, func(t testing.TB) tier.Bytes {
			return open(t, memcached.Options{Servers: []string{one}, Prefix: prefix()})
		}, storetest.BytesOptions{TooLarge: largest})
	})
	t.Run("few connections", func(t *testing.T) {
		t.Parallel()
		storetest.TestBytesWith(t, func(t testing.TB) tier.Bytes {
			return open(t, memcached.Options{Servers: []string{one}, Prefix: prefix(), MaxConnections: 2})
		}, storetest.BytesOptions{TooLarge: largest})
	})
	t.Run("two servers", func(t *testing.T) {
		t.Parallel()
		storetest.TestBytesWith(t, func(t testing.TB) tier.Bytes {
			return open(t, memcached.Options{Servers: []string{one, other}, Prefix: prefix(), MaxValueSize: largest / 2})
		}, storetest.BytesOptions{TooLarge: largest/2 + 1})
	})
	t.Run("another's client", func(t *testing.T) {
		t.Parallel()
		c := memcache.New(one)
		t.Cleanup(func() { c.Close() })
		storetest.TestBytes(t, func(testing.TB) tier.Bytes {
			return memcached.NewWith(c, memcached.Options{Prefix: prefix()})
		})
	})
}
