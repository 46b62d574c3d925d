package servers_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/terracecache/terrace/tier/storetest/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client speaks lines with a server.
type client struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, addr string) client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return client{Conn: conn, r: bufio.NewReader(conn)}
}

func (c client) ask(line string, within time.Duration) (string, error) {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, line+"\r\n"); err != nil {
		return "", err
	}
	answer, err := c.r.ReadString('\n')
	return strings.TrimSpace(answer), err
}

func wantAnswer(t *testing.T, c client, line, want string) {
	t.Helper()
	got, err := c.ask(line, 5*time.Second)
	if err != nil || got != want {
		t.Fatalf("%s: got %q, %v; want %q", line, got, err, want)
	}
}

func TestRedisStartsStopsAndStartsAgainOnTheSamePort(t *testing.T) {
	begun := time.Now()
	r := servers.Redis(t)
	t.Logf("up after %v", time.Since(begun))
	addr := r.Addr()
	wantAnswer(t, dial(t, addr), "SET k v", "+OK")

	for name, end := range map[string]func(){"Stop": r.Stop, "Kill": r.Kill} {
		end()
		end()
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Errorf("after %s: still listening", name)
		}
		r.Start()
		r.Start()
		if got := r.Addr(); got != addr {
			t.Errorf("after a restart: got address %s, want %s", got, addr)
		}
		wantAnswer(t, dial(t, addr), "EXISTS k", ":0")
	}
}

func TestArgumentsReachTheServer(t *testing.T) {
	r := servers.Redis(t, "--databases", "2", "--requirepass", "secret")
	c := dial(t, r.Addr())
	wantAnswer(t, c, "AUTH secret", "+OK")
	wantAnswer(t, c, "SELECT 2", "-ERR DB index is out of range")
}

func TestMemcachedStartsAndRestarts(t *testing.T) {
	begun := time.Now()
	m := servers.Memcached(t)
	t.Logf("up after %v", time.Since(begun))
	wantAnswer(t, dial(t, m.Addr()), "set k 0 0 1\r\nv", "STORED")
	m.Stop()
	m.Start()
	wantAnswer(t, dial(t, m.Addr()), "get k", "END")
}

func TestManyServersAtOnceShareNoPort(t *testing.T) {
	seen := map[string]bool{}
	for range 5 {
		for _, s := range []*servers.Server{servers.Redis(t), servers.Memcached(t)} {
			if seen[s.Addr()] {
				t.Errorf("two servers at %s", s.Addr())
			}
			seen[s.Addr()] = true
		}
	}
}

func TestServersEndWithTheTest(t *testing.T) {
	var addrs []string
	t.Run("inner", func(t *testing.T) {
		addrs = append(addrs, servers.Redis(t).Addr(), servers.Memcached(t).Addr())
		addrs = append(addrs, servers.Proxy(t, addrs[0]).Addr())
	})
	for _, addr := range addrs {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Errorf("%s is still listening", addr)
		}
	}
}

// failingT takes the place of a test that is expected to fail.
type failingT struct {
	*testing.T
	message chan string
}

func (t *failingT) Fatal(args ...any)                 { t.message <- fmt.Sprint(args...); runtime.Goexit() }
func (t *failingT) Fatalf(format string, args ...any) { t.Fatal(fmt.Sprintf(format, args...)) }

func fatal(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	inner := &failingT{T: t, message: make(chan string, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(inner)
	}()
	<-done
	select {
	case message := <-inner.message:
		return message
	default:
		t.Fatal("did not fail the test")
		return ""
	}
}

func TestAMissingBinaryFailsAndSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, start := range []func(testing.TB){
		func(t testing.TB) { servers.Redis(t) },
		func(t testing.TB) { servers.Memcached(t) },
	} {
		if got, want := fatal(t, start), "apt-get install redis-server memcached"; !strings.Contains(got, want) {
			t.Errorf("got %q, want it to contain %q", got, want)
		}
	}
}

func TestABadArgumentFailsWithTheServersOwnWords(t *testing.T) {
	got := fatal(t, func(t testing.TB) { servers.Redis(t, "--no-such-directive", "1") })
	if want := "no-such-directive"; !strings.Contains(got, want) {
		t.Errorf("got %q, want it to contain %q", got, want)
	}
}

func TestProxyFaults(t *testing.T) {
	r := servers.Redis(t)
	p := servers.Proxy(t, r.Addr())
	c := dial(t, p.Addr())
	wantAnswer(t, c, "PING", "+PONG")

	const delay = 80 * time.Millisecond
	p.Delay(delay)
	begun := time.Now()
	wantAnswer(t, c, "PING", "+PONG")
	if took := time.Since(begun); took < delay {
		t.Errorf("delayed: answered after %v, want %v or more", took, delay)
	}

	p.BlackHole()
	if got, err := c.ask("ECHO held", 30*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("black hole: got %q, %v; want a timeout", got, err)
	}
	late := dial(t, p.Addr()) // still accepted
	if got, err := late.ask("PING", 30*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("black hole, new connection: got %q, %v; want a timeout", got, err)
	}
	p.Restore()
	if got, err := late.r.ReadString('\n'); err == nil {
		t.Errorf("a read after its deadline answered %q", got)
	}
	wantAnswer(t, dial(t, p.Addr()), "PING", "+PONG")

	c = dial(t, p.Addr())
	wantAnswer(t, c, "PING", "+PONG")
	p.Reset()
	if got, err := c.ask("PING", time.Second); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("reset: got %q, %v; want a connection reset", got, err)
	}
	c = dial(t, p.Addr())
	wantAnswer(t, c, "PING", "+PONG")

	p.Cut()
	p.Cut()
	if got, err := c.ask("PING", time.Second); err == nil {
		t.Errorf("cut: got %q, want an error", got)
	}
	if conn, err := net.Dial("tcp", p.Addr()); err == nil {
		conn.Close()
		t.Error("cut: a new connection was accepted")
	}
	p.Restore()
	p.Restore()
	wantAnswer(t, dial(t, p.Addr()), "PING", "+PONG")
}

func TestProxyClosesTheClientWhenTheServerIsGone(t *testing.T) {
	r := servers.Redis(t)
	p := servers.Proxy(t, r.Addr())
	c := dial(t, p.Addr())
	wantAnswer(t, c, "PING", "+PONG")
	r.Kill()
	if got, err := c.ask("PING", 5*time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %q, %v; want a closed connection", got, err)
	}
	r.Start()
	wantAnswer(t, dial(t, p.Addr()), "PING", "+PONG")
}

func TestProxyEndsWhileHoldingData(t *testing.T) {
	r := servers.Redis(t)
	t.Run("inner", func(t *testing.T) {
		p := servers.Proxy(t, r.Addr())
		p.Delay(time.Hour)
		c := dial(t, p.Addr())
		if _, err := c.ask("PING", 20*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want a timeout", err)
		}
	})
}

func TestRedisClusterSharesTheSlots(t *testing.T) {
	begun := time.Now()
	nodes := servers.RedisCluster(t, 3)
	t.Logf("up after %v", time.Since(begun))
	stored, moved := 0, 0
	for _, node := range nodes {
		switch got, err := dial(t, node.Addr()).ask("SET key value", time.Second); {
		case err != nil:
			t.Error(err)
		case got == "+OK":
			stored++
		case strings.HasPrefix(got, "-MOVED"):
			moved++
		default:
			t.Errorf("got %q", got)
		}
	}
	if stored != 1 || moved != 2 {
		t.Errorf("%d nodes took the key and %d knew who does, want 1 and 2", stored, moved)
	}
}

func TestSentinelMakesTheReplicaMaster(t *testing.T) {
	master := servers.Redis(t)
	replica := servers.RedisReplica(t, master)
	sentinel := servers.RedisSentinel(t, master, "main", 1)
	wantAnswer(t, dial(t, replica.Addr()), "SET k v", "-READONLY You can't write against a read only replica.")
	wantAnswer(t, dial(t, sentinel.Addr()), "SENTINEL CKQUORUM main", "+OK 1 usable Sentinels. Quorum and failover authorization can be reached")
}
