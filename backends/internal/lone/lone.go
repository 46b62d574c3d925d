// Package lone has reads that are alone made by their callers.
//
// A call that its caller can leave is made by another goroutine, and to wake that one and to be
// woken by it is a good part of what a read takes in a local network. A [Line] keeps a connection
// of its own for such reads, so that the end of a caller's context can end the call instead: it
// ends the connection.
package lone

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// pause is how long after a connection was begun or lost none is begun. Callers that leave lose
// one each, so a slow server would otherwise have to take a new one for each read.
const pause = time.Second

// Client reads over the one connection that it has. One goroutine at a time uses it.
type Client[V any] interface {
	// Read returns what is under the key. Reads that connect have the context that bounds that,
	// and others one that does not end.
	Read(ctx context.Context, key string) (v V, o Outcome, err error)

	Close()
}

// Outcome is what came of a read.
type Outcome int

const (
	// Lost says that the read is to be made again another way.
	Lost Outcome = iota
	// Final says that it is not, but that the connection is of no more use.
	Final
	// Answered says that the connection can be used again.
	Answered
)

// Open makes a client of which all that it dials stands on conn. It does not connect.
type Open[V any] func(conn *Conn) Client[V]

// Limits bound a line's connection; zero is no bound.
type Limits struct {
	Connect time.Duration // how long it takes to make; must be above zero
	Idle    time.Duration // how long it is not used
	Life    time.Duration // how long it is used
}

// Line keeps a connection for reads that are alone. It may be used concurrently.
type Line[V any] struct {
	open   Open[V]
	limits Limits
	pause  time.Duration

	life    context.Context // ends with Close
	cancel  context.CancelFunc
	closing sync.Once
	conn    atomic.Pointer[Conn] // nil where there is none

	// turn holds an element while nobody uses what follows.
	turn   chan struct{}
	client Client[V] // nil where there is none
	begun  time.Time // when it was made
	used   time.Time // when it was used last, where that is of interest
	again  time.Time // when the next may be made
	unfit  bool      // none can
}

// New returns a line whose client is made by open.
func New[V any](limits Limits, open Open[V]) *Line[V] {
	l := &Line[V]{open: open, limits: limits, pause: pause, turn: make(chan struct{}, 1)}
	l.life, l.cancel = context.WithCancel(context.Background())
	l.turn <- struct{}{}
	return l
}

// Read returns what is under the key, or the context's error when that has ended. It reports
// false for ok where it could not ask, or could not tell.
func (l *Line[V]) Read(ctx context.Context, key string) (v V, ok bool, err error) {
	select {
	case <-l.turn:
	default:
		return v, false, nil
	}
	defer func() { l.turn <- struct{}{} }() // a client may panic, and a context
	if l.client == nil {
		return v, false, nil
	}
	if l.isOver() {
		l.drop()
		return v, false, nil
	}
	return l.read(ctx, key)
}

// isOver reports whether the connection is beyond its limits.
func (l *Line[V]) isOver() bool {
	if l.limits.Idle <= 0 && l.limits.Life <= 0 {
		return false
	}
	now := time.Now()
	idle := now.Sub(l.used)
	l.used = now
	return l.limits.Idle > 0 && idle >= l.limits.Idle || l.limits.Life > 0 && now.Sub(l.begun) >= l.limits.Life
}

// read is called by who has the turn.
func (l *Line[V]) read(ctx context.Context, key string) (v V, ok bool, err error) {
	keep := false
	defer func() {
		if !keep {
			l.drop()
		}
	}()
	stop := l.heed(ctx)
	v, outcome, err := l.client.Read(context.Background(), key)
	if inTime := stop(); inTime && outcome == Answered {
		keep = true
		return v, true, err
	}
	if outcome != Answered {
		if ended := ctx.Err(); ended != nil {
			return v, true, ended
		}
	}
	return v, outcome != Lost, err
}

// heed has the context's end end the connection, until stop is called. That reports false where
// it comes too late.
func (l *Line[V]) heed(ctx context.Context) (stop func() bool) {
	end := l.conn.Load().endNow
	if own, ok := ctx.(interface{ AfterFunc(call func()) func() bool }); ok { // needs less than what follows
		return own.AfterFunc(end)
	}
	if ctx.Done() != nil {
		return context.AfterFunc(ctx, end)
	}
	if deadline, limited := ctx.Deadline(); limited {
		return time.AfterFunc(time.Until(deadline), end).Stop
	}
	return func() bool { return true }
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
	ctx, cancel := context.WithTimeout(l.life, l.limits.Connect)
	defer cancel()
	conn := newConn()
	client := l.open(conn)
	inTime := context.AfterFunc(ctx, conn.endNow)
	outcome := Lost
	defer func() {
		if inTime() && outcome == Answered && l.life.Err() == nil {
			l.begun = time.Now()
			l.client, l.used = client, l.begun
			l.conn.Store(conn)
			return
		}
		l.unfit = conn.isUnfit()
		client.Close()
	}()
	_, outcome, _ = client.Read(ctx, key)
}

// Close ends what is under way, and waits for that within the limit.
func (l *Line[V]) Close(limit time.Duration) { l.closing.Do(func() { l.close(limit) }) }

func (l *Line[V]) close(limit time.Duration) {
	l.cancel()
	if conn := l.conn.Load(); conn != nil {
		conn.end()
	}
	timeout := time.NewTimer(max(limit, time.Millisecond))
	defer timeout.Stop()
	select {
	case <-l.turn: // and is never given back
		if l.client != nil {
			l.drop()
		}
	case <-timeout.C:
	}
}
