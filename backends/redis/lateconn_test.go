package redis

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
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
