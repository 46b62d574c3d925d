package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/tier/storetest/servers"
)

// A connection that failed fails whoever it was dialled for, and nobody who finds it later:
// go-redis keeps it where its caller has left.
func TestLateConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errNoWay := errors.New("no way there")
		var dials int
		var server net.Conn
		dial := lateDials{timeout: time.Second}.DialHook(func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
			switch dials++; dials {
			case 1:
				return nil, errNoWay
			case 2:
				<-ctx.Done()
				return nil, ctx.Err()
			default:
				conn, server = net.Pipe()
				return conn, nil
			}
		})
		conn, err := dial(t.Context(), "tcp", "there:1")
		if err != nil {
			t.Fatalf("dial: got error %v, want none yet", err)
		}
		if got := conn.RemoteAddr().String(); got != "there:1" {
			t.Errorf("address: got %q", got)
		}
		for range 2 {
			if _, err := conn.Write([]byte("x")); !errors.Is(err, errNoWay) || errors.Unwrap(errors.Unwrap(err)) != nil {
				t.Errorf("at once: got error %v, want that of dialling behind one layer", err)
			}
		}
		wantUnseen(t, conn)
		time.Sleep(sameDial)
		began := time.Now()
		if err := conn.SetDeadline(began.Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("second dial: got error %v, want the deadline's", err)
		}
		if took := time.Since(began); took != 50*time.Millisecond {
			t.Errorf("second dial: took %v, want what is left of the deadline", took)
		}
		time.Sleep(sameDial)
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		go func() {
			if _, err := conn.Write([]byte("hello")); err != nil {
				t.Errorf("third dial: got error %v", err)
			}
		}()
		synctest.Wait()
		text := make([]byte, 5)
		if n, err := server.Read(text); err != nil || string(text[:n]) != "hello" {
			t.Errorf("the server got %q, %v", text[:n], err)
		}
		wantUnseen(t, conn) // a pipe is no socket, as a connection of TLS is none
		began = time.Now()
		if _, err := conn.Read(text); err == nil || time.Since(began) > time.Second {
			t.Errorf("a read without an answer: got %v after %v, want the deadline's error", err, time.Since(began))
		}
		conn.Close()
		if _, err := server.Read(text); err == nil {
			t.Error("Close left the connection open")
		}
		if _, err := conn.Write(text); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: got error %v, want net.ErrClosed", err)
		}
		if dials != 3 {
			t.Errorf("dials: got %d, want 3", dials)
		}
	})
}

// go-redis does not try again what fails for one server's client, and callers see why it did.
func TestLateConnIsFinal(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	dial := lateDials{timeout: time.Second, final: true}.DialHook(func(context.Context, string, string) (net.Conn, error) { return nil, refused })
	conn, err := dial(t.Context(), "tcp", "there:1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Write([]byte("x"))
	if op := (*net.OpError)(nil); err == nil || errors.As(err, &op) {
		t.Errorf("got error %v, want one that hides what it is", err)
	}
	s := New(redis.NewClient(&redis.Options{Addr: "there:1"}))
	defer s.client.Close()
	if err := s.wrap(t.Context(), "get", err); !errors.Is(err, refused) {
		t.Errorf("to callers: got error %v, want that of dialling", err)
	}
}

// Close ends a dialling under way.
func TestLateConnCloseWhileItDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := lateDials{timeout: time.Hour}.DialHook(func(ctx context.Context, _, _ string) (net.Conn, error) {
			if _, again := ctx.Deadline(); !again {
				return nil, errors.New("no way there")
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		conn, err := dial(context.Background(), "tcp", "there:1")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(sameDial)
		done := make(chan error)
		go func() {
			_, err := conn.Write([]byte("x"))
			done <- err
		}()
		synctest.Wait()
		began := time.Now()
		conn.Close()
		if err := <-done; err == nil || time.Since(began) > 0 {
			t.Errorf("got %v after %v, want an error at once", err, time.Since(began))
		}
	})
}

// wantUnseen: where there is no socket to look at, go-redis finds nothing wrong.
func wantUnseen(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err == nil {
		err = raw.Read(func(uintptr) bool { t.Error("there is a socket"); return true })
	}
	if err != nil {
		t.Errorf("go-redis would close the connection: %v", err)
	}
}

// C59: connections that were dialled late and have stood since are found dead as all others
// are, when the server has closed them while they were idle: no call fails, however many.
func TestC59LateConnections(t *testing.T) {
	const places = 8
	proxy := servers.Proxy(t, servers.Redis(t).Addr())
	var down atomic.Bool
	down.Store(true)
	left := make(chan struct{})
	var mu sync.Mutex
	var stand []net.Conn
	s, err := OpenClient(&redis.UniversalOptions{
		Addrs: []string{proxy.Addr()}, PoolSize: places + 1, // one is for reads that are alone
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if down.Load() {
				<-left
				return nil, errors.New("no way there")
			}
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				stand = append(stand, conn)
			}
			return conn, err
		},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client := s.client.(*redis.Client)

	// Those whose callers have left are kept, and stand once they are used.
	var calls sync.WaitGroup
	for range places {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			_ = client.Ping(ctx).Err()
		})
	}
	calls.Wait()
	close(left)
	for began := time.Now(); client.PoolStats().IdleConns < places; time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("go-redis keeps %d connections, want %d", client.PoolStats().IdleConns, places)
		}
	}
	down.Store(false)
	time.Sleep(sameDial) // until the failures are no answer any more
	var all []*redis.Conn
	for range places {
		all = append(all, client.Conn())
	}
	for _, conn := range all {
		if err := conn.Ping(t.Context()).Err(); err != nil {
			t.Errorf("back: got error %v", err)
		}
	}
	for _, conn := range all {
		conn.Close()
	}

	proxy.Cut()
	proxy.Restore()
	for _, conn := range stand {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := conn.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			t.Fatalf("got %d bytes and error %v, want the end of the connection", n, err)
		}
	}
	if got := client.PoolStats().IdleConns; got != places || len(stand) != places {
		t.Fatalf("%d idle connections, %d of them closed, want %d", got, len(stand), places)
	}
	for range places {
		if _, err := s.Get(t.Context(), "key"); err != nil {
			t.Errorf("after the idle connections were closed: got error %v", err)
		}
	}
}
