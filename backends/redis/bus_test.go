package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// quickPing lets tests notice a silent connection soon.
var quickPing = redis.BusOptions{Ping: 100 * time.Millisecond}

func openBus(t testing.TB, url string, o redis.BusOptions) *redis.Bus {
	t.Helper()
	b, err := redis.OpenBus(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestBusConformance(t *testing.T) {
	server := servers.Redis(t)
	system := func(t testing.TB, hole bool) storetest.BusSystem {
		proxy := servers.Proxy(t, server.Addr())
		s := storetest.BusSystem{
			Open: func(t testing.TB) tier.Bus { return openBus(t, "redis://"+proxy.Addr(), quickPing) },
			Cut:  proxy.Cut, Restore: proxy.Restore,
		}
		if hole {
			s.Cut = proxy.BlackHole
		}
		return s
	}
	t.Run("cut", func(t *testing.T) {
		storetest.TestBus(t, func(t testing.TB) storetest.BusSystem { return system(t, false) })
	})
	t.Run("black hole", func(t *testing.T) {
		storetest.TestBus(t, func(t testing.TB) storetest.BusSystem { return system(t, true) })
	})
	t.Run("client of one's own", func(t *testing.T) {
		storetest.TestBus(t, func(t testing.TB) storetest.BusSystem {
			c := client(t, &goredis.Options{Addr: server.Addr(), Protocol: 2})
			return storetest.BusSystem{Open: func(testing.TB) tier.Bus { return redis.NewBus(c) }}
		})
	})
	t.Run("ring", func(t *testing.T) {
		other := servers.Redis(t)
		c := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"a": server.Addr(), "b": other.Addr()}})
		t.Cleanup(func() { _ = c.Close() })
		_ = c.Ping(t.Context()) // what it keeps running is its own
		storetest.TestBus(t, func(t testing.TB) storetest.BusSystem {
			return storetest.BusSystem{Open: func(testing.TB) tier.Bus { return redis.NewBus(c) }}
		})
	})
}

func TestBusOnACluster(t *testing.T) {
	nodes := servers.RedisCluster(t, 3)
	storetest.TestBus(t, func(t testing.TB) storetest.BusSystem {
		return storetest.BusSystem{
			Open: func(t testing.TB) tier.Bus {
				return openBus(t, "redis+cluster://"+nodes[0].Addr()+"?addr="+nodes[1].Addr(), quickPing)
			},
		}
	})
}

// ear remembers what a subscription is told.
type ear struct {
	mu     sync.Mutex
	heard  []string
	lost   []error
	up     bool
	events chan struct{}
}

func newEar() *ear { return &ear{events: make(chan struct{}, 1)} }

func (e *ear) note(f func()) {
	e.mu.Lock()
	f()
	e.mu.Unlock()
	select {
	case e.events <- struct{}{}:
	default:
	}
}

func (e *ear) Connected()       { e.note(func() { e.up = true }) }
func (e *ear) Message(m []byte) { e.note(func() { e.heard = append(e.heard, string(m)) }) }
func (e *ear) Lost(why error)   { e.note(func() { e.up, e.lost = false, append(e.lost, why) }) }

func (e *ear) await(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(limit)
	for {
		e.mu.Lock()
		done := ok()
		e.mu.Unlock()
		if done {
			return
		}
		select {
		case <-e.events:
		case <-deadline:
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

func listen(t *testing.T, b tier.Bus, channel string) *ear {
	t.Helper()
	e := newEar()
	if _, err := b.Subscribe(channel, e); err != nil {
		t.Fatal(err)
	}
	e.await(t, 10*time.Second, "a connection", func() bool { return e.up })
	return e
}

// C36: a connection that is dead and does not say so is found out by its silence, and the
// subscriber is told both of the loss and of the return.
func TestC36ASilentConnectionIsNoticed(t *testing.T) {
	proxy := servers.Proxy(t, servers.Redis(t).Addr())
	b := openBus(t, "redis://"+proxy.Addr(), quickPing)
	e := listen(t, b, "channel")
	proxy.BlackHole()
	start := time.Now()
	e.await(t, 5*time.Second, "Lost", func() bool { return len(e.lost) > 0 })
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("noticed after %v with a ping each %v", took, quickPing.Ping)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start = time.Now()
	if err := b.Publish(ctx, "channel", []byte("x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Publish into a black hole: %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("Publish with 50 ms took %v", took)
	}
	proxy.Restore()
	e.await(t, 10*time.Second, "Connected", func() bool { return e.up })
}

// C36: the server closes the connections of subscribers, and is restarted.
func TestC36TheServerEndsSubscriptions(t *testing.T) {
	server := servers.Redis(t)
	b := openBus(t, "redis://"+server.Addr(), quickPing)
	e := listen(t, b, "channel")
	if err := client(t, &goredis.Options{Addr: server.Addr()}).Do(t.Context(), "client", "kill", "type", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	e.await(t, 5*time.Second, "Lost", func() bool { return len(e.lost) == 1 })
	e.await(t, 5*time.Second, "Connected", func() bool { return e.up })

	server.Kill()
	e.await(t, 5*time.Second, "Lost", func() bool { return len(e.lost) == 2 })
	server.Start()
	e.await(t, 10*time.Second, "Connected", func() bool { return e.up })
	if err := b.Publish(t.Context(), "channel", []byte("after")); err != nil {
		t.Fatal(err)
	}
	e.await(t, 5*time.Second, "the message after the restart", func() bool { return len(e.heard) == 1 })
}

// A subscriber that the server finds too slow is disconnected by it, and told.
func TestTheServerDropsASlowSubscriber(t *testing.T) {
	server := servers.Redis(t, "--client-output-buffer-limit", "pubsub 1mb 1mb 1")
	proxy := servers.Proxy(t, server.Addr())
	e := listen(t, openBus(t, "redis://"+proxy.Addr(), redis.BusOptions{Ping: 10 * time.Second}), "channel")
	publisher := openBus(t, "redis://"+server.Addr(), redis.BusOptions{Timeout: 10 * time.Second})
	// The proxy takes what comes, so the kernel's buffers do not stand in the way; many
	// large messages at once exceed the server's.
	body := []byte(strings.Repeat("x", 1<<20))
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for range 16 {
				_ = publisher.Publish(t.Context(), "channel", body)
			}
		})
	}
	done.Wait()
	e.await(t, 10*time.Second, "Lost, or all messages", func() bool { return len(e.lost) > 0 || len(e.heard) == 128 })
	e.await(t, 10*time.Second, "a connection", func() bool { return e.up })
}

func TestBusTellsNoPassword(t *testing.T) {
	const password = "s3cr3t-of-the-bus"
	server := servers.Redis(t, "--requirepass", "other")
	b := openBus(t, "redis://:"+password+"@"+server.Addr(), quickPing)
	e := newEar()
	if _, err := b.Subscribe("channel", e); err != nil {
		t.Fatal(err)
	}
	e.await(t, 5*time.Second, "Lost", func() bool { return len(e.lost) > 0 })
	publishErr := b.Publish(t.Context(), "channel", nil)
	_, openErr := redis.OpenBus("redis://:"+password+"@host:x y", redis.BusOptions{})
	if publishErr == nil || openErr == nil {
		t.Errorf("no error: %v, %v", publishErr, openErr)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range []string{fmt.Sprint(e.lost), fmt.Sprint(publishErr), fmt.Sprint(openErr), fmt.Sprintf("%v %+v %#v", b, b, b)} {
		if strings.Contains(text, password) {
			t.Errorf("the password is in %q", text)
		}
	}
}

func TestABusThatIsMadeWronglySaysSo(t *testing.T) {
	for _, b := range []*redis.Bus{redis.NewBus(nil), redis.NewBusWith(client(t, &goredis.Options{Addr: "localhost:1"}), redis.BusOptions{Ping: -1})} {
		if err := b.Publish(t.Context(), "channel", nil); err == nil {
			t.Error("Publish: no error")
		}
		if _, err := b.Subscribe("channel", newEar()); err == nil {
			t.Error("Subscribe: no error")
		}
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for _, o := range []redis.BusOptions{{Timeout: -1}, {Ping: -1}, {Buffer: -1}} {
		if _, err := redis.OpenBus("redis://localhost:1", o); err == nil {
			t.Errorf("OpenBus with %+v: no error", o)
		}
	}
}
