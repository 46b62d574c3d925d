package gather_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/internal/gate"
	"github.com/terracecache/terrace/backends/internal/gather"
)

// lean is a context that can interrupt, as those of the coordinator. Its Done is never
// closed, so that who waits for that waits for ever.
type lean struct {
	context.Context
	beside context.Context

	mu  sync.Mutex
	c   chan<- bool
	err error
}

func (l *lean) Done() <-chan struct{} { return make(chan struct{}) }

func (l *lean) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.beside != nil && l.err == nil {
		return l.beside.Err()
	}
	return l.err
}

func (l *lean) Interrupt(c chan<- bool) (context.Context, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.c = c
	} else {
		c <- false
	}
	return l.beside, true
}

func (l *lean) Uninterrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.c = nil
}

func (l *lean) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = context.DeadlineExceeded
	if l.c != nil {
		select {
		case l.c <- false:
		default:
		}
	}
}

func TestAnInterruptedReadReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: time.Second}
		g := s.gatherer()
		caller, leave := context.WithTimeout(t.Context(), 2*time.Millisecond)
		defer leave()
		var readers sync.WaitGroup
		for after, ctx := range map[time.Duration]*lean{
			time.Millisecond:     {Context: t.Context()},
			2 * time.Millisecond: {Context: t.Context(), beside: caller},
		} {
			if ctx.beside == nil {
				time.AfterFunc(after, ctx.end)
			}
			readers.Go(func() {
				begun := time.Now()
				a, _ := g.Do(ctx, "k")
				if !errors.Is(a.Err, context.DeadlineExceeded) || time.Since(begun) != after {
					t.Errorf("after %v: %q, %v, want a deadline's error after %v", time.Since(begun), a.Value, a.Err, after)
				}
			})
		}
		readers.Go(func() { read(t, g, "k", time.Second) })
		readers.Wait()
		read(t, g, "later", time.Second) // by a waiter that was interrupted before
		g.Close()
	})
}

// An interruption that comes with the answer, or just before or after it, disturbs no
// later read.
func TestInterruptionsMeetAnswers(t *testing.T) {
	g := gather.New(gate.New(100), most, func(_ context.Context, keys []string, answers []gather.Answer[string]) {
		for i, key := range keys {
			answers[i].Value = strings.ToUpper(key)
		}
	})
	defer g.Close()
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			for n := range 2_000 {
				key := fmt.Sprint("k", i, " ", n)
				ctx := &lean{Context: context.Background()}
				if n%2 == 0 {
					go func() {
						for range rand.IntN(200) {
							_ = ctx.Err()
						}
						ctx.end()
					}()
				}
				a, _ := g.Do(ctx, key)
				switch {
				case a.Err == nil && a.Value == strings.ToUpper(key):
				case n%2 == 0 && errors.Is(a.Err, context.DeadlineExceeded):
				default:
					t.Errorf("%s: %q, %v", key, a.Value, a.Err)
				}
			}
		})
	}
	readers.Wait()
}
