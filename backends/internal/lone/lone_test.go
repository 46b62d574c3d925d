package lone

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// late is how long after its time something may happen on a busy machine.
const late = 2 * time.Second

// server answers each line with its capitals, but for those that it is told to be silent about.
type server struct {
	net.Listener
	silent   atomic.Bool
	asked    chan string // lines; nobody has to listen
	accepted atomic.Int64
	ended    chan struct{} // an element for each connection that its client has closed

	mu    sync.Mutex
	conns []net.Conn
}

func serve(t *testing.T) *server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: l, asked: make(chan string, 1), ended: make(chan struct{}, 100)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			serving.Go(func() { s.answer(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.cut()
		serving.Wait()
	})
	return s
}

func (s *server) answer(c net.Conn) {
	defer func() {
		_ = c.Close()
		select {
		case s.ended <- struct{}{}:
		default:
		}
	}()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		select {
		case s.asked <- lines.Text():
		default:
		}
		if !s.silent.Load() {
			_, _ = fmt.Fprintln(c, strings.ToUpper(lines.Text()))
		}
	}
}

// cut closes all connections.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

// client is one that dials at its first read, and again after an error.
type client struct {
	dial    func() (net.Conn, error)
	timeout time.Duration
	conn    net.Conn
	lines   *bufio.Reader
}

func (c *client) Read(_ context.Context, key string) (string, Outcome, error) {
	if key == "panic" {
		panic("client")
	}
	answer, err := c.read(key)
	switch {
	case err == nil:
		return answer, Answered, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Close()
		return "", Final, err
	default:
		c.Close()
		return "", Lost, err
	}
}

func (c *client) read(key string) (string, error) {
	if c.conn == nil {
		conn, err := c.dial()
		if err != nil {
			return "", err
		}
		c.conn, c.lines = conn, bufio.NewReader(conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(c.conn, key); err != nil {
		return "", err
	}
	answer, err := c.lines.ReadString('\n')
	return strings.TrimSpace(answer), err
}

func (c *client) Close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// lineTo returns a line whose pause is as given. What is dialled goes through over.
func lineTo(t *testing.T, s *server, timeout, pause time.Duration, over func(net.Conn) net.Conn) *Line[string] {
	l := New(Limits{Connect: late}, func(conn *Conn) Client[string] {
		return &client{timeout: timeout, dial: func() (net.Conn, error) {
			return conn.Dial(func() (net.Conn, error) {
				dialled, err := net.Dial("tcp", s.Addr().String())
				if err == nil && over != nil {
					dialled = over(dialled)
				}
				return dialled, err
			})
		}}
	})
	l.pause = pause
	t.Cleanup(func() { l.Close(late) })
	return l
}

// connected has the line connect.
func connected(t *testing.T, l *Line[string]) {
	t.Helper()
	for begun := time.Now(); ; {
		l.Connect("first")
		<-l.turn // it has, or has not
		l.turn <- struct{}{}
		if v, ok, err := l.Read(t.Context(), "k"); ok {
			if v != "K" || err != nil {
				t.Fatalf("read %q, %v, want K", v, err)
			}
			return
		}
		if time.Since(begun) > late {
			t.Fatal("no connection")
		}
	}
}

func isLost(t *testing.T, l *Line[string]) {
	t.Helper()
	if v, ok, err := l.Read(t.Context(), "k"); ok {
		t.Errorf("read %q, %v over a connection that is lost", v, err)
	}
}

func TestReadsShareOneConnection(t *testing.T) {
	s := serve(t)
	l := lineTo(t, s, late, 0, nil)
	isLost(t, l) // there was none yet
	connected(t, l)
	for i := range 100 {
		key := fmt.Sprint("k", i)
		if v, ok, err := l.Read(t.Context(), key); !ok || err != nil || v != strings.ToUpper(key) {
			t.Fatalf("read %q, %v, %v", v, ok, err)
		}
		l.Connect("k")
	}
	if n := s.accepted.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// own is a context that calls functions at its end without anything of package context.
type own struct{ context.Context }

func (o own) AfterFunc(call func()) func() bool { return context.AfterFunc(o.Context, call) }

func TestTheEndOfAContextEndsARead(t *testing.T) {
	for name, of := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancelled": context.WithCancel,
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 20*time.Millisecond)
		},
		"own": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			return own{ctx}, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			l := lineTo(t, s, time.Hour, time.Hour, nil)
			connected(t, l)
			s.silent.Store(true)
			ctx, cancel := of(t.Context())
			defer cancel()
			for len(s.asked) > 0 {
				<-s.asked
			}
			go func() {
				<-s.asked // the read is under way
				if name != "deadline" {
					cancel()
				}
			}()
			begun := time.Now()
			v, ok, err := l.Read(ctx, "never")
			if took := time.Since(begun); !ok || err == nil || !errors.Is(err, ctx.Err()) || took > late {
				t.Errorf("read %q, %v, %v after %v, want %v", v, ok, err, took, ctx.Err())
			}
			<-s.ended // or the late answer would be that to the next read
			s.silent.Store(false)
			isLost(t, l)
			l.Connect("k") // too early
			isLost(t, l)
			if n := s.accepted.Load(); n != 1 {
				t.Errorf("%d connections within the pause, want 1", n)
			}
		})
	}
}

func TestADeadConnectionIsNoAnswer(t *testing.T) {
	s := serve(t)
	l := lineTo(t, s, late, 0, nil)
	connected(t, l)
	s.cut()
	<-s.ended
	isLost(t, l)
	connected(t, l)
}

func TestATimeoutIsAnAnswer(t *testing.T) {
	s := serve(t)
	l := lineTo(t, s, 10*time.Millisecond, time.Hour, nil)
	connected(t, l)
	s.silent.Store(true)
	var timeout net.Error
	if v, ok, err := l.Read(context.Background(), "k"); !ok || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("read %q, %v, %v, want a timeout", v, ok, err)
	}
	isLost(t, l)
}

func TestDrop(t *testing.T) {
	s := serve(t)
	l := lineTo(t, s, late, time.Hour, nil)
	l.Drop() // nothing
	connected(t, l)
	l.Drop()
	<-s.ended
	isLost(t, l)
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	s := serve(t)
	l := lineTo(t, s, time.Hour, 0, nil)
	connected(t, l)
	s.silent.Store(true)
	for len(s.asked) > 0 {
		<-s.asked
	}
	read := make(chan error, 1)
	go func() {
		_, _, err := l.Read(context.Background(), "never")
		read <- err
	}()
	<-s.asked
	begun := time.Now()
	l.Close(late)
	if err := <-read; err == nil || time.Since(begun) > late {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	l.Connect("k")
	isLost(t, l)
	l.Close(0) // again
}

func TestCloseEndsConnecting(t *testing.T) {
	s := serve(t)
	s.silent.Store(true)
	l := lineTo(t, s, time.Hour, 0, nil)
	l.Connect("never")
	<-s.asked
	begun := time.Now()
	l.Close(late)
	<-s.ended
	if took := time.Since(begun); took > late {
		t.Errorf("Close took %v", took)
	}
}

// foreign is a connection of a type that is not known.
type foreign struct{ net.Conn }

func TestAConnectionThatMayNotEndIsNotUsed(t *testing.T) {
	s := serve(t)
	l := lineTo(t, s, late, 0, func(c net.Conn) net.Conn { return foreign{c} })
	l.Connect("k")
	<-s.ended
	<-l.turn // the try is over
	l.turn <- struct{}{}
	for range 10 {
		l.Connect("k")
		isLost(t, l)
	}
	if n := s.accepted.Load(); n != 1 {
		t.Errorf("%d connections, want one try", n)
	}
}

func TestAClientThatPanicsLosesItsConnection(t *testing.T) {
	s := serve(t)
	l := lineTo(t, s, late, 0, nil)
	connected(t, l)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _, _ = l.Read(t.Context(), "panic")
	}()
	isLost(t, l)
	l.Connect("panic") // in the background, where nobody could recover it
	connected(t, l)
}

// Ends of contexts that come with the answer, or just before or after it, have nobody get
// another's answer.
func TestEndsMeetAnswers(t *testing.T) {
	s := serve(t)
	l := lineTo(t, s, late, 0, nil)
	connected(t, l)
	answered, left, lost := 0, 0, 0
	for n := 0; n < 2_000; n++ {
		key := fmt.Sprint("k", n)
		ctx, cancel := context.WithCancel(t.Context())
		ending := make(chan struct{})
		go func() {
			defer close(ending)
			for range n % 500 {
				_ = ctx.Err()
			}
			if n%2 == 0 {
				cancel()
			}
		}()
		v, ok, err := l.Read(ctx, key)
		<-ending
		cancel()
		switch {
		case !ok: // it was ended behind the answer before
			lost++
			connected(t, l)
		case err == nil && v == strings.ToUpper(key):
			answered++
		case errors.Is(err, context.Canceled) && n%2 == 0:
			left++
			connected(t, l)
		default:
			t.Errorf("%s: %q, %v", key, v, err)
		}
	}
	t.Logf("%d answered, %d left, %d lost", answered, left, lost)
	if answered == 0 || left == 0 {
		t.Error("want some of both")
	}
}

func TestAConnectionIsDialledOnce(t *testing.T) {
	s := serve(t)
	for name, conn := range map[string]*Conn{"dialled": newConn(), "ended": newConn()} {
		dials := 0
		dial := func() (net.Conn, error) {
			dials++
			return net.Dial("tcp", s.Addr().String())
		}
		if name == "ended" {
			conn.end()
		} else if c, err := conn.Dial(dial); err != nil {
			t.Fatal(err)
		} else {
			defer c.Close()
		}
		before := dials
		if c, err := conn.Dial(dial); c != nil || !errors.Is(err, errLost) || dials > before {
			t.Errorf("%s: %v, %v after %d dials, want none", name, c, err, dials-before)
		}
	}
}

// What is dialled when it is too late is closed.
func TestAConnectionThatEndsWhileItIsDialled(t *testing.T) {
	s := serve(t)
	conn := newConn()
	c, err := conn.Dial(func() (net.Conn, error) {
		conn.end()
		return net.Dial("tcp", s.Addr().String())
	})
	if c != nil || !errors.Is(err, errLost) {
		t.Errorf("%v, %v", c, err)
	}
	<-s.ended
}

func TestAConnectionBeyondItsLimitsIsNotUsed(t *testing.T) {
	for name, limits := range map[string]Limits{"idle": {Idle: time.Minute}, "life": {Life: time.Minute}} {
		s := serve(t)
		l := lineTo(t, s, late, 0, nil)
		l.limits.Idle, l.limits.Life = limits.Idle, limits.Life
		connected(t, l)
		l.begun = l.begun.Add(-59 * time.Second)
		l.used = l.used.Add(-59 * time.Second)
		if _, ok, err := l.Read(t.Context(), "k"); !ok || err != nil {
			t.Errorf("%s: %v, %v within the limit", name, ok, err)
		}
		l.begun = l.begun.Add(-time.Second)
		l.used = l.used.Add(-time.Minute)
		isLost(t, l)
		<-s.ended
		connected(t, l)
	}
}

// armless is a context with a deadline that nobody can wait for.
type armless struct {
	context.Context
	at time.Time
}

func (a armless) Deadline() (time.Time, bool) { return a.at, true }

func TestADeadlineThatNobodyCanWaitFor(t *testing.T) {
	s := serve(t)
	l := lineTo(t, s, time.Hour, 0, nil)
	connected(t, l)
	s.silent.Store(true)
	begun := time.Now()
	_, ok, err := l.Read(armless{context.Background(), begun.Add(20 * time.Millisecond)}, "never")
	if took := time.Since(begun); !ok || !errors.Is(err, os.ErrDeadlineExceeded) || took > late {
		t.Errorf("%v, %v after %v", ok, err, took)
	}
}

// panicky is a context of which a method panics.
type panicky struct{ context.Context }

func (panicky) AfterFunc(func()) func() bool { panic("AfterFunc") }

// stopless is one whose functions cannot be stopped.
type stopless struct{ context.Context }

func (stopless) AfterFunc(func()) func() bool { return func() bool { panic("stop") } }

func TestAContextThatPanicsTakesNothingAlong(t *testing.T) {
	s := serve(t)
	l := lineTo(t, s, late, 0, nil)
	for _, ctx := range []context.Context{panicky{t.Context()}, stopless{t.Context()}} {
		connected(t, l)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T: no panic", ctx)
				}
			}()
			_, _, _ = l.Read(ctx, "k")
		}()
		<-s.ended
	}
	connected(t, l)
}
