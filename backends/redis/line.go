package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// line keeps a connection that something is listened to on, beside the client's pool,
// and makes it again when it is lost. One goroutine reads what comes and one pings; a
// third calls the listener, where the line ends in a mailbox, so that neither a slow
// listener nor a slow server keeps the other from being noticed.
type line[M any] struct {
	what    string        // it is, for errors
	ping    time.Duration // how often the connection is tried
	connect func(context.Context) (*redis.PubSub, error)
	// take is given what is read, hands on what are messages, and tells whether it says
	// that all messages from now on arrive here.
	take   func(read any) (connected bool, err error)
	hangUp func() // after each connection that was made, and each try to; may be nil
	to     sink[M]

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// sink is where a line ends. None of its methods waits for a listener.
type sink[M any] interface {
	message(m M, size int)
	connected()
	lost(why error)
}

func (l *line[M]) start(ctx context.Context) {
	l.ctx, l.cancel = context.WithCancel(ctx)
	l.running.Go(l.run)
}

// startInto is start of a line that has the mailbox to itself.
func (l *line[M]) startInto(ctx context.Context, b *mailbox[M]) {
	l.to = b
	l.start(ctx)
	l.running.Go(func() { b.run(l.ctx) })
}

func (l *line[M]) stop() { l.cancel() }

func (l *line[M]) close() {
	l.cancel()
	l.running.Wait()
}

// The wait between two tries to connect.
const (
	firstReconnect = 20 * time.Millisecond
	lastReconnect  = 2 * time.Second
)

// run connects, listens until the connection is lost, and connects again.
func (l *line[M]) run() {
	wait := firstReconnect
	for {
		connected, err := l.listen()
		if l.ctx.Err() != nil {
			return
		}
		if connected {
			wait = firstReconnect
		}
		l.to.lost(fmt.Errorf("terrace/redis: %s lost: %w", l.what, asReply(err)))
		pause := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-pause.C:
		case <-l.ctx.Done():
			pause.Stop()
			return
		}
		wait = min(2*wait, lastReconnect)
	}
}

// noDial has ended. go-redis, where a call with it finds the connection lost, can then not
// make it again, which takes its time and would not be told; reading and writing ask a
// context for its deadline only.
var noDial = func() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}()

// listen hands on messages for as long as one connection lives.
func (l *line[M]) listen() (connected bool, err error) {
	if l.hangUp != nil {
		defer l.hangUp()
	}
	sub, err := l.connect(l.ctx)
	if err != nil {
		return false, err
	}
	// Closing is what ends a read.
	ctx, cancel := context.WithCancel(l.ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() {
		<-ctx.Done()
		_ = sub.Close()
	})
	helpers.Go(func() { l.keepAwake(ctx, cancel, sub) })
	defer helpers.Wait()
	defer cancel()
	for {
		// A read that has timed out may have taken half of a message, so it is the last.
		m, err := sub.ReceiveTimeout(noDial, 3*l.ping)
		if err != nil {
			if isTimeout(err) {
				err = errSilent
			}
			return connected, err
		}
		switch stands, err := l.take(m); {
		case err != nil:
			return connected, err
		case stands && connected:
			return connected, errMoved
		case stands:
			connected = true
			l.to.connected()
		}
	}
}

// keepAwake keeps the connection from being silent. If it cannot be written to it is lost.
func (l *line[M]) keepAwake(ctx context.Context, lost func(), sub *redis.PubSub) {
	tick := time.NewTicker(l.ping)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := sub.Ping(noDial); err != nil {
				lost()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// dial runs a call that makes a connection, within the time limit, also where the client
// does not heed contexts. It never reuses one that was lost: go-redis would make that
// again without telling.
func dial(ctx context.Context, limit time.Duration, call func(context.Context) (*redis.PubSub, error)) (*redis.PubSub, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type outcome struct {
		sub *redis.PubSub
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil { // as a Ring without a shard that works does
				o.err = fmt.Errorf("the client panicked: %v", p)
			}
			if o.err != nil && o.sub != nil {
				_ = o.sub.Close()
				o.sub = nil
			}
			done <- o
		}()
		o.sub, o.err = call(ctx)
	}()
	select {
	case o := <-done:
		return o.sub, o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.sub != nil {
				_ = o.sub.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// errSilent is why a connection is given up that has answered nothing, not even a ping.
var errSilent = errors.New("the connection is silent")

// errMoved is why a connection is given up whose channel has gone to another node, or
// that go-redis has made anew.
var errMoved = errors.New("the subscription has moved")
