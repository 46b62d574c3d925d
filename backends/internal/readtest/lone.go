package readtest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest/servers"
)

// Lone is a kind of store that has reads that are alone made by their callers.
type Lone struct {
	Upstream string // a server
	Open     func(t testing.TB, addr string) tier.Bytes

	// Read reads over the connection for such reads, and reports false where there is none.
	Read func(ctx context.Context, s tier.Bytes, key string) bool
}

const (
	loneLeft  = 25 * time.Millisecond  // after which a caller leaves
	loneSlow  = 300 * time.Millisecond // takes an answer then
	loneLate  = 200 * time.Millisecond // is soon enough on a busy machine
	loneInAll = 10 * time.Second
)

// Test tests it.
func (l Lone) Test(t *testing.T) {
	t.Run("answers", l.answers)
	t.Run("a deadline", func(t *testing.T) {
		l.leave(t, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, loneLeft)
		})
	})
	t.Run("a cancelled context", func(t *testing.T) {
		l.leave(t, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(loneLeft, cancel)
			return ctx, cancel
		})
	})
	t.Run("a connection that was closed", func(t *testing.T) {
		l.lose(t, func(p *servers.FaultProxy) { p.Cut(); p.Restore() })
	})
	t.Run("a connection that was reset", func(t *testing.T) { l.lose(t, (*servers.FaultProxy).Reset) })
	t.Run("close", l.close)
}

// open returns a store that has such a connection, and holds "value" under "k".
func (l Lone) open(t *testing.T) (tier.Bytes, *servers.FaultProxy) {
	proxy := servers.Proxy(t, l.Upstream)
	s := l.Open(t, proxy.Addr())
	if err := s.Set(t.Context(), "k", []byte("value"), time.Minute); err != nil {
		t.Fatal(err)
	}
	l.await(t, s)
	return s, proxy
}

// await reads until the connection stands.
func (l Lone) await(t *testing.T, s tier.Bytes) {
	t.Helper()
	for begun := time.Now(); !l.Read(t.Context(), s, "k"); {
		wantValue(t, s, "k", []byte("value"))
		if time.Since(begun) > loneInAll {
			t.Fatal("reads that are alone have got no connection")
		}
	}
}

func wantValue(t *testing.T, s tier.Bytes, key string, want []byte) {
	t.Helper()
	if got, err := s.Get(t.Context(), key); err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
		t.Fatalf("Get(%.20q): %.20q, %v, want %.20q", key, got, err, want)
	}
}

func (l Lone) answers(t *testing.T) {
	s, _ := l.open(t)
	large := bytes.Repeat([]byte("0123456789abcdef"), 40_000)
	for key, value := range map[string][]byte{"": []byte("of no key"), "empty": {}, "large": large, "of two\r\nlines": []byte("a\r\nEND\r\n")} {
		if err := s.Set(t.Context(), key, value, time.Minute); err != nil {
			t.Fatal(err)
		}
		wantValue(t, s, key, value)
	}
	wantValue(t, s, "nothing", nil)
	if !l.Read(t.Context(), s, "k") {
		t.Error("the connection is lost")
	}
}

// leave reads under a context that ends before the answer comes.
func (l Lone) leave(t *testing.T, of func(context.Context) (context.Context, context.CancelFunc)) {
	s, proxy := l.open(t)
	if err := s.Set(t.Context(), "other", []byte("another value"), time.Minute); err != nil {
		t.Fatal(err)
	}
	proxy.Delay(loneSlow)
	ctx, cancel := of(t.Context())
	defer cancel()
	begun := time.Now()
	got, err := s.Get(ctx, "other")
	if took := time.Since(begun); err == nil || !errors.Is(err, ctx.Err()) || took > loneLeft+loneLate {
		t.Errorf("%q, %v after %v, want %v", got, err, took, ctx.Err())
	}
	proxy.Restore()
	for range 10 {
		wantValue(t, s, "k", []byte("value")) // and not the answer that came late
	}
	l.await(t, s)
}

// lose reads over a connection that is no more.
func (l Lone) lose(t *testing.T, drop func(*servers.FaultProxy)) {
	s, proxy := l.open(t)
	drop(proxy)
	wantValue(t, s, "k", []byte("value"))
	l.await(t, s)
}

func (l Lone) close(t *testing.T) {
	s, proxy := l.open(t)
	proxy.BlackHole()
	read, begins := make(chan error, 1), make(chan struct{})
	go func() {
		close(begins)
		_, err := s.Get(context.Background(), "k")
		read <- err
	}()
	<-begins // it may be under way then, or not
	begun := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-read; !errors.Is(err, tier.ErrClosed) || time.Since(begun) > loneLate {
		t.Errorf("after %v: %v, want tier.ErrClosed", time.Since(begun), err)
	}
}
