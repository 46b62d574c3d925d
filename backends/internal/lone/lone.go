// Package lone has reads that are alone made by their callers.
//
// A call that its caller can leave is made by another goroutine, and to wake that one and to be
// woken by it is a good part of what a read takes in a local network. A [Line] keeps a connection
// of its own for such reads, so that the end of a caller's context can end the call instead: it
// ends the connection.
package lone

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/backends/internal/failure"
)

// pause is how long after a connection was begun or lost none is begun. Callers that leave lose
// one each, so a slow server would otherwise have to take a new one for each read.
const pause = time.Second

// Client reads over the one connection that it has. One goroutine at a time uses it.
type Client[V any] interface {
	// Read returns what is under the key. It reports whether the connection can be used again.
	Read(key string) (v V, stands bool, err error)

	Close()
}

// Open makes a client of which all that it dials stands on conn, and is dialled while the context
// lasts. It does not connect.
type Open[V any] func(ctx context.Context, conn *Conn) Client[V]

// Line keeps a connection for reads that are alone. It may be used concurrently.
type Line[V any] struct {
	open  Open[V]
	limit time.Duration
	pause time.Duration

	life    context.Context // ends with Close
	cancel  context.CancelFunc
	closing sync.Once
	conn    atomic.Pointer[Conn] // nil where there is none

	// turn holds an element while nobody uses what follows.
	turn   chan struct{}
	client Client[V] // nil where there is none
	again  time.Time // when the next may be made
	unfit  bool      // none can
}

// New returns a line whose client is made within the limit.
func New[V any](limit time.Duration, open Open[V]) *Line[V] {
	l := &Line[V]{open: open, limit: limit, pause: pause, turn: make(chan struct{}, 1)}
	l.life, l.cancel = context.WithCancel(context.Background())
	l.turn <- struct{}{}
	return l
}

// Read returns what is under the key, or the context's error when that has ended. It reports
// false for ok where it could not ask, or the connection turned out to be dead.
func (l *Line[V]) Read(ctx context.Context, key string) (v V, ok bool, err error) {
	select {
	case <-l.turn:
	default:
		return v, false, nil
	}
	if l.client == nil {
		l.turn <- struct{}{}
		return v, false, nil
	}
	return l.read(ctx, key)
}

// read is called by who has the turn, which it gives back.
func (l *Line[V]) read(ctx context.Context, key string) (v V, ok bool, err error) {
	stands := false
	stop := l.heed(ctx)
	defer func() { // the client may panic
		if inTime := stop(); !inTime || !stands {
			l.drop()
		}
		l.turn <- struct{}{}
	}()
	v, stands, err = l.client.Read(key)
	if stands {
		return v, true, err
	}
	if ended := ctx.Err(); ended != nil {
		return v, true, ended
	}
	return v, !failure.IsDead(err) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, errLost), err
}

// heed has the context's end end the connection, until stop is called. That reports false where
// it comes too late.
func (l *Line[V]) heed(ctx context.Context) (stop func() bool) {
	end := l.conn.Load().endNow
	switch own := ctx.(type) {
	case interface{ AfterFunc(call func()) func() bool }: // needs less than what follows
		return own.AfterFunc(end)
	default:
		if ctx.Done() == nil {
			return func() bool { return true }
		}
		return context.AfterFunc(ctx, end)
	}
}

// Drop gives the connection up, since others of the same server were found dead or silent. Who reads
// over it sees for himself.
func (l *Line[V]) Drop() {
	select {
	case <-l.turn:
		if l.client != nil {
			l.drop()
		}
		l.turn <- struct{}{}
	default:
	}
}

// drop is called by who has the turn.
func (l *Line[V]) drop() {
	l.conn.Store(nil)
	l.client.Close()
	l.client = nil
	l.again = time.Now().Add(l.pause)
}

// Connect makes a connection in the background, where there is none and it is time for that, by
// reading what is under the key. It is called when the server has answered, so that one that does
// not is not asked.
func (l *Line[V]) Connect(key string) {
	select {
	case <-l.turn:
	default:
		return
	}
	if l.client != nil || l.unfit || time.Now().Before(l.again) || l.life.Err() != nil {
		l.turn <- struct{}{}
		return
	}
	l.again = time.Now().Add(l.pause)
	go func() {
		defer func() {
			_ = recover() // what somebody else's dialling does others' calls will tell
			l.turn <- struct{}{}
		}()
		l.connect(key)
	}()
}

func (l *Line[V]) connect(key string) {
	ctx, cancel := context.WithTimeout(l.life, l.limit)
	defer cancel()
	conn := newConn()
	client := l.open(ctx, conn)
	inTime := context.AfterFunc(ctx, conn.endNow)
	stands := false
	defer func() {
		if inTime() && stands && l.life.Err() == nil {
			l.client = client
			l.conn.Store(conn)
			return
		}
		l.unfit = conn.isUnfit()
		client.Close()
	}()
	_, stands, _ = client.Read(key)
}

// Close ends what is under way, and waits for that within the limit.
func (l *Line[V]) Close(limit time.Duration) { l.closing.Do(func() { l.close(limit) }) }

func (l *Line[V]) close(limit time.Duration) {
	l.cancel()
	if conn := l.conn.Load(); conn != nil {
		conn.end()
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case <-l.turn: // and is never given back
		if l.client != nil {
			l.drop()
		}
	case <-timeout.C:
	}
}
