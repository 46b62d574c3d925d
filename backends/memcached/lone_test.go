package memcached

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/internal/readtest"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// overLine reads over the line, and reports false where there is none.
func overLine(ctx context.Context, s tier.Bytes, key string) bool {
	store := s.(*Store)
	itemKey, _ := store.itemKey(key)
	_, ok, err := store.of(itemKey).line.Read(ctx, itemKey)
	return ok && err == nil
}

func TestReadsThatAreAlone(t *testing.T) {
	readtest.Lone{
		Upstream: servers.Memcached(t).Addr(),
		Open: func(t testing.TB, addr string) tier.Bytes {
			s, err := Open(Options{Servers: []string{addr}, Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		Read: overLine,
	}.Test(t)
}

// The connection for reads that are alone is one of Options.MaxConnections.
func TestTheLineIsOneOfTheConnections(t *testing.T) {
	addr := servers.Memcached(t).Addr()
	for most := 1; most <= 3; most++ {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			var dials atomic.Int64 // nothing closes one
			s, err := Open(Options{
				Servers: []string{addr}, MaxConnections: most,
				DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					dials.Add(1)
					return new(net.Dialer).DialContext(ctx, network, address)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for begun := time.Now(); most > 1 && !overLine(t.Context(), s, "k") && time.Since(begun) < 5*time.Second; {
				_, _ = s.Get(t.Context(), "k")
			}
			var callers sync.WaitGroup
			for i := range 64 {
				callers.Go(func() {
					key := fmt.Sprint("k", i)
					if err := s.Set(t.Context(), key, []byte(key), time.Minute); err != nil {
						t.Error(err)
					}
					if got, err := s.Get(t.Context(), key); string(got) != key || err != nil {
						t.Errorf("%q, %v, want %q", got, err, key)
					}
				})
			}
			callers.Wait()
			if n := dials.Load(); n != int64(most) {
				t.Errorf("%d connections, want %d", n, most)
			}
		})
	}
}
