package gather_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
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

// crowded returns a gatherer that has met as many readers at once, and its server.
func crowded(t *testing.T, readers int) (*server, *gather.Gatherer[string]) {
	s := &server{took: quick}
	g := s.gatherer()
	var reading sync.WaitGroup
	for i := range readers {
		reading.Go(func() { g.Do(t.Context(), fmt.Sprint("first", i)) })
	}
	reading.Wait()
	return s, g
}

// Readers of a crowd do not look out for the end of their contexts themselves, which is a
// second thing to wait for. They are told of it soon all the same, and those who stay get
// their answers.
func TestTheContextsOfACrowdAreVisited(t *testing.T) {
	for name, own := range map[string]func(context.Context) context.Context{
		"a context": func(ctx context.Context) context.Context { return ctx },
		"a context beside one that interrupts": func(ctx context.Context) context.Context {
			return &lean{Context: context.Background(), beside: ctx}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const crowd, slow, cancelled, soon = 60, 200 * time.Millisecond, 25 * time.Millisecond, time.Millisecond
				s, g := crowded(t, crowd)
				s.took = slow
				var readers sync.WaitGroup
				for i := range crowd {
					readers.Go(func() {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						if leaves := i%2 == 0; !leaves {
							if a, _ := g.Do(own(ctx), fmt.Sprint("k", i)); a.Err != nil || a.Value != fmt.Sprint("K", i) {
								t.Errorf("who stays got %q, %v", a.Value, a.Err)
							}
							return
						}
						begun := time.Now()
						time.AfterFunc(cancelled, cancel)
						a, _ := g.Do(own(ctx), fmt.Sprint("k", i))
						if took := time.Since(begun); !errors.Is(a.Err, context.Canceled) || took < cancelled || took > cancelled+soon {
							t.Errorf("left after %v with %v, want %v or little more and the context's error", took, a.Err, cancelled)
						}
					})
				}
				readers.Wait()
				time.Sleep(slow) // round trips that all have left end
				g.Close()
			})
		})
	}
}

// An end of a context that a visit finds when the answer comes, or just before or after it,
// disturbs no later read.
func TestVisitsMeetAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather.New(gate.New(100), 100, func(_ context.Context, keys []string, answers []gather.Answer[string]) {
			for i, key := range keys {
				answers[i].Value = strings.ToUpper(key)
			}
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
		})
		var readers sync.WaitGroup
		var answered, left atomic.Int64
		for i := range 64 {
			readers.Go(func() {
				for n := range 200 {
					key := fmt.Sprint("k", i, " ", n)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(2000))*time.Microsecond)
					a, _ := g.Do(ctx, key)
					cancel()
					switch {
					case a.Err == nil && a.Value == strings.ToUpper(key):
						answered.Add(1)
					case errors.Is(a.Err, context.DeadlineExceeded):
						left.Add(1)
					default:
						t.Errorf("%s: %q, %v", key, a.Value, a.Err)
					}
				}
			})
		}
		readers.Wait()
		time.Sleep(time.Second) // round trips that all have left end
		g.Close()
		if answered.Load() == 0 || left.Load() == 0 {
			t.Errorf("%d reads answered, %d left: want some of both", answered.Load(), left.Load())
		}
	})
}

// stuck is a context of which a method does not return, once it is told so, until it is
// freed.
type stuck struct {
	context.Context
	inErr, inDeadline atomic.Bool
	met, free         chan struct{}
	once              sync.Once
}

func (s *stuck) stay(here *atomic.Bool) {
	if here.Load() {
		s.once.Do(func() { close(s.met) })
		<-s.free
	}
}

func (s *stuck) Err() error { s.stay(&s.inErr); return s.Context.Err() }

func (s *stuck) Deadline() (time.Time, bool) { s.stay(&s.inDeadline); return s.Context.Deadline() }

// What a context's methods do is its own reader's matter: nobody else waits for them.
func TestAContextThatIsStuckHoldsUpItsOwnReader(t *testing.T) {
	for name, begin := range map[string]func(*stuck){
		"Err":      func(s *stuck) { s.inErr.Store(true) },
		"Deadline": func(s *stuck) { s.inDeadline.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			const crowd = 60
			boarded, answer := make(chan struct{}, 2*crowd), make(chan struct{})
			g := gather.New(gate.New(2*crowd), most, func(_ context.Context, keys []string, _ []gather.Answer[string]) {
				for range keys {
					boarded <- struct{}{}
				}
				<-answer
			})
			defer g.Close()
			var readers sync.WaitGroup
			defer readers.Wait()
			defer close(answer)
			ctx := &stuck{Context: t.Context(), met: make(chan struct{}), free: make(chan struct{})}
			defer close(ctx.free)
			for i := range crowd {
				readers.Go(func() { g.Do(ctx, fmt.Sprint("k", i)) })
			}
			for range crowd {
				<-boarded
			}
			begin(ctx)
			readers.Go(func() { g.Do(ctx, "later") })
			<-ctx.met
			caller, leave := context.WithTimeout(t.Context(), 25*time.Millisecond)
			defer leave()
			left := make(chan error, 1)
			readers.Go(func() {
				a, _ := g.Do(caller, "another")
				left <- a.Err
			})
			select {
			case err := <-left:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("another reader got %v, want the end of his own context", err)
				}
			case <-time.After(5 * time.Second):
				t.Error("another reader waits for the method of a context that is not his")
			}
		})
	}
}

// Who waits for a round trip under way is told of the end of his context after Close too.
func TestVisitsGoOnAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd, slow, cancelled = 60, 200 * time.Millisecond, 25 * time.Millisecond
		s, g := crowded(t, crowd)
		s.took = slow
		var readers sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		for i := range crowd {
			readers.Go(func() {
				if a, _ := g.Do(ctx, fmt.Sprint("k", i)); a.Err == nil || time.Since(begun) > cancelled+time.Millisecond {
					t.Errorf("left after %v with %v", time.Since(begun), a.Err)
				}
			})
		}
		time.Sleep(time.Millisecond) // all are under way
		g.Close()
		time.Sleep(cancelled - time.Millisecond)
		cancel()
		readers.Wait()
		time.Sleep(slow) // round trips that all have left end
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
