package memcached_test

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/terracecache/terrace/backends/memcached"
)

// TestOddDialContexts: what a DialContext of the user's does wrong is an error of the call.
func TestOddDialContexts(t *testing.T) {
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"neither":  func(context.Context, string, string) (net.Conn, error) { return nil, nil },
		"a panic":  func(context.Context, string, string) (net.Conn, error) { panic("no") },
		"a Goexit": func(context.Context, string, string) (net.Conn, error) { runtime.Goexit(); return nil, nil },
		"a closed one": func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			return near, far.Close()
		},
	} {
		for _, addrs := range [][]string{{"127.0.0.1:1"}, {"127.0.0.1:1", "127.0.0.1:2"}} {
			t.Run(name, func(t *testing.T) {
				s := open(t, memcached.Options{Servers: addrs, Timeout: 100 * time.Millisecond, DialContext: dial})
				for range 4 {
					if _, err := s.Get(t.Context(), "key"); err == nil {
						t.Error("Get: no error")
					}
					if err := s.Set(t.Context(), "key", []byte("value"), time.Hour); err == nil {
						t.Error("Set: no error")
					}
					if values, err := s.GetMany(t.Context(), []string{"a", "b", "c", "d"}); err == nil || len(values) != 4 {
						t.Errorf("GetMany: got %d values, %v", len(values), err)
					}
				}
			})
		}
	}
}
