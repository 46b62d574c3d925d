package redis_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// A server that is back is asked at once, however often it could not be reached (C47):
// go-redis itself refuses calls for up to a second more.
func TestC47AServerThatIsBackIsDialledAtOnce(t *testing.T) {
	r := servers.Redis(t)
	for name, open := range map[string]func() (*redis.Store, error){
		"Open": func() (*redis.Store, error) {
			return redis.Open("redis://"+r.Addr()+"?pool_size=1", redis.Options{Prefix: prefix()})
		},
		"OpenClient": func() (*redis.Store, error) {
			return redis.OpenClient(&goredis.UniversalOptions{Addrs: []string{r.Addr()}, PoolSize: 1}, redis.Options{Prefix: prefix()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r.Kill()
			for range 3 {
				_, err := s.Get(t.Context(), "key")
				if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "dial tcp "+r.Addr()) {
					t.Errorf("down: got error %v, want the connection refused, and by whom", err)
				}
			}
			r.Start()
			if err := s.Set(t.Context(), "key", []byte("value"), time.Minute); err != nil {
				t.Errorf("back: got error %v", err)
			}
		})
	}
}
