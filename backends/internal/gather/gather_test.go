package gather_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/terracecache/terrace/backends/internal/gate"
	"github.com/terracecache/terrace/backends/internal/gather"
	"github.com/terracecache/terrace/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const most = 8

// server answers each key with itself in capitals, some time after it was asked.
type server struct {
	took time.Duration
	// before is called with the keys of each round trip, at its beginning.
	before func(ctx context.Context, keys []string)

	mu    sync.Mutex
	trips [][]string
}

func (s *server) fetch(ctx context.Context, keys []string, answers []gather.Answer[string]) {
	s.mu.Lock()
	s.trips = append(s.trips, slices.Clone(keys))
	s.mu.Unlock()
	if s.before != nil {
		s.before(ctx, keys)
	}
	time.Sleep(s.took)
	for i, key := range keys {
		answers[i].Value = strings.ToUpper(key)
	}
}

func (s *server) asked() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.trips)
}

func (s *server) gatherer() *gather.Gatherer[string] {
	return gather.New(gate.New(100), most, s.fetch)
}

// read wants the key's answer after a time.
func read(t *testing.T, g *gather.Gatherer[string], key string, after time.Duration) {
	t.Helper()
	begun := time.Now()
	a, _ := g.Do(t.Context(), key)
	if a.Value != strings.ToUpper(key) || a.Err != nil {
		t.Errorf("%s: got %q, %v", key, a.Value, a.Err)
	}
	if took := time.Since(begun); took != after {
		t.Errorf("%s: answered after %v, want %v", key, took, after)
	}
}

// held is how many round trips of a few reads are under way before further ones wait.
const held = 4

// hold keeps so many round trips under way for as long as the server takes.
func hold(t *testing.T, g *gather.Gatherer[string], readers *sync.WaitGroup, took time.Duration) {
	t.Helper()
	for i := range held {
		readers.Go(func() { read(t, g, fmt.Sprint("holds ", i), took) })
		synctest.Wait()
	}
}

// quick is a round trip that ends before those who wait for it lose patience.
const quick = 100 * time.Microsecond

func TestALoneReadGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: time.Millisecond}
		g := s.gatherer()
		for i := range 5 {
			read(t, g, fmt.Sprint("k", i), time.Millisecond)
		}
		if got := len(s.asked()); got != 5 {
			t.Errorf("%d round trips, want 5", got)
		}
		g.Close()
	})
}

func TestReadsThatMeetShareARoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: quick}
		g := s.gatherer()
		var readers sync.WaitGroup
		hold(t, g, &readers, quick)
		for i := range most - 1 {
			readers.Go(func() { read(t, g, fmt.Sprint("k", i), 2*quick) })
		}
		readers.Wait()
		trips := s.asked()
		if len(trips) != held+1 || len(trips[held]) != most-1 {
			t.Errorf("round trips %q, want %d of one key and one of %d", trips, held, most-1)
		}
		g.Close()
	})
}

func TestManyReadsMakeFewRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: quick}
		g := s.gatherer()
		const readers, rounds = 64, 10
		var all sync.WaitGroup
		for i := range readers {
			all.Go(func() {
				for round := range rounds {
					key := fmt.Sprint("k", i, " ", round)
					if a, _ := g.Do(t.Context(), key); a.Value != strings.ToUpper(key) || a.Err != nil {
						t.Errorf("%s: got %q, %v", key, a.Value, a.Err)
					}
				}
			})
		}
		all.Wait()
		trips, keys := s.asked(), 0
		for _, trip := range trips {
			if keys += len(trip); len(trip) > most {
				t.Errorf("a round trip has %d keys, want %d at most", len(trip), most)
			}
		}
		if keys != readers*rounds || len(trips) > 2*keys/most {
			t.Errorf("%d round trips of %d keys, want about %d of %d", len(trips), keys, readers*rounds/most, readers*rounds)
		}
		g.Close()
	})
}

func TestAFullBatchGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: quick}
		g := s.gatherer()
		var readers sync.WaitGroup
		hold(t, g, &readers, quick)
		for i := range 3 * most {
			readers.Go(func() { read(t, g, fmt.Sprint("k", i), quick) })
		}
		readers.Wait()
		if got := len(s.asked()); got != held+3 {
			t.Errorf("%d round trips, want %d", got, held+3)
		}
		g.Close()
	})
}

// Of many readers some are on their way while others board: a few round trips are under
// way, each with its part of the crowd.
func TestACrowdGoesInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd, rounds, parts = 60, 50, 3 // as many as the gatherer makes of a crowd
		s := &server{took: quick}
		var under, most atomic.Int32
		g := gather.New(gate.New(100), 100, func(ctx context.Context, keys []string, answers []gather.Answer[string]) {
			n := under.Add(1)
			defer under.Add(-1)
			s.fetch(ctx, keys, answers)
			if len(s.asked()) > crowd { // the crowd is known by then
				most.Store(max(most.Load(), n))
			}
		})
		var readers sync.WaitGroup
		for i := range crowd {
			readers.Go(func() {
				for round := range rounds {
					key := fmt.Sprint("k", i, " ", round)
					if a, _ := g.Do(t.Context(), key); a.Value != strings.ToUpper(key) || a.Err != nil {
						t.Errorf("%s: got %q, %v", key, a.Value, a.Err)
					}
				}
			})
		}
		readers.Wait()
		trips := len(s.asked())
		if most.Load() < parts-1 || most.Load() > parts || trips < 90 || trips > 200 {
			t.Errorf("%d round trips, %d at a time, want about 120, %d", trips, most.Load(), parts)
		}
		for i := range 3 {
			read(t, g, fmt.Sprint("lone", i), quick)
		}
		g.Close()
	})
}

func TestAKeyIsAskedForOnce(t *testing.T) {
	for _, others := range []int{0, 20} { // few keys are found another way than many
		synctest.Test(t, func(t *testing.T) {
			s := &server{took: quick}
			g := gather.New(gate.New(100), 100, s.fetch)
			var readers sync.WaitGroup
			hold(t, g, &readers, quick)
			for i := range others {
				readers.Go(func() { read(t, g, fmt.Sprint("k", i), 2*quick) })
			}
			synctest.Wait()
			for range 5 {
				readers.Go(func() {
					if a, shared := g.Do(t.Context(), "same"); a.Value != "SAME" || !shared {
						t.Errorf("got %q, shared %v, want it shared", a.Value, shared)
					}
				})
			}
			readers.Wait()
			trips := s.asked()
			if got := len(trips[held]); len(trips) != held+1 || got != others+1 {
				t.Errorf("%d round trips, the last of %d keys, want %d, %d", len(trips), got, held+1, others+1)
			}
			if _, shared := g.Do(t.Context(), "same"); shared {
				t.Error("a lone read is told that it shares")
			}
			g.Close()
		})
	}
}

func TestACallerLeavesOnTimeAndFailsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 200 * time.Millisecond
		s := &server{took: slow}
		g := s.gatherer()
		var readers sync.WaitGroup
		hold(t, g, &readers, slow)
		for i, budget := range []time.Duration{25 * time.Millisecond, 50 * time.Millisecond} {
			readers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), budget)
				defer cancel()
				begun := time.Now()
				if a, _ := g.Do(ctx, fmt.Sprint("short", i)); !errors.Is(a.Err, context.DeadlineExceeded) {
					t.Errorf("got error %v, want the context's", a.Err)
				}
				if took := time.Since(begun); took != budget {
					t.Errorf("left after %v, want %v", took, budget)
				}
			})
		}
		synctest.Wait()
		// They waited together for a round trip under way to end, and then went anyway.
		readers.Go(func() { read(t, g, "long", slow+500*time.Microsecond) })
		readers.Wait()
		if got := len(s.asked()); got != held+1 {
			t.Errorf("%d round trips, want %d", got, held+1)
		}
		g.Close()
	})
}

func TestTheFirstOfABatchIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: 10 * time.Millisecond}
		s.before = func(ctx context.Context, keys []string) {
			if len(keys) != 2 {
				return
			}
			if got := ctx.Value(name{}); got != "first" {
				t.Errorf("the round trip's context has the value %v, want the first caller's", got)
			}
			time.Sleep(5 * time.Millisecond) // the first has left
			if err := ctx.Err(); err != nil {
				t.Errorf("the round trip's context has ended: %v", err)
			}
		}
		g := s.gatherer()
		var readers sync.WaitGroup
		hold(t, g, &readers, 10*time.Millisecond)
		first, cancel := context.WithCancel(context.WithValue(t.Context(), name{}, "first"))
		readers.Go(func() {
			if a, _ := g.Do(first, "first"); !errors.Is(a.Err, context.Canceled) {
				t.Errorf("the first got error %v, want its context's", a.Err)
			}
		})
		synctest.Wait()
		readers.Go(func() { read(t, g, "second", 15500*time.Microsecond) })
		time.Sleep(time.Millisecond)
		cancel()
		readers.Wait()
		g.Close()
	})
}

type name struct{}

func TestARoundTripHasTheLatestDeadline(t *testing.T) {
	at := func(ctx context.Context) time.Duration {
		deadline, limited := ctx.Deadline()
		if !limited {
			return 0
		}
		return time.Until(deadline).Round(time.Second)
	}
	for name, c := range map[string]struct{ budgets, want []time.Duration }{
		"all have one":  {[]time.Duration{2 * time.Second, 9 * time.Second, 4 * time.Second}, []time.Duration{9 * time.Second}},
		"one has none":  {[]time.Duration{2 * time.Second, 0, 4 * time.Second}, []time.Duration{0}},
		"a lone reader": {[]time.Duration{3 * time.Second}, []time.Duration{3 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []time.Duration
				s := &server{took: quick}
				g := s.gatherer()
				var readers sync.WaitGroup
				hold(t, g, &readers, quick)
				s.before = func(ctx context.Context, _ []string) { got = append(got, at(ctx)) }
				for i, budget := range c.budgets {
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					if budget > 0 {
						ctx, cancel = context.WithTimeout(ctx, budget)
					}
					readers.Go(func() {
						defer cancel()
						if a, _ := g.Do(ctx, fmt.Sprint("k", i)); a.Err != nil {
							t.Error(a.Err)
						}
					})
				}
				readers.Wait()
				if !slices.Equal(got, c.want) {
					t.Errorf("the round trip had %v to go, want %v", got, c.want)
				}
				g.Close()
			})
		})
	}
}

func TestARoundTripThatNobodyWaitsForEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		s := &server{before: func(ctx context.Context, _ []string) {
			derived, cancel := context.WithCancel(ctx) // as clients do
			defer cancel()
			<-derived.Done()
			ended++
		}}
		g := s.gatherer()
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if a, _ := g.Do(ctx, "k"); !errors.Is(a.Err, context.DeadlineExceeded) {
				t.Errorf("got error %v, want the context's", a.Err)
			}
			cancel()
			synctest.Wait()
			if ended != i+1 {
				t.Errorf("%d round trips have ended, want %d", ended, i+1)
			}
		}
		g.Close()
	})
}

func TestStalledRoundTripsDoNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: quick}
		release := make(chan struct{})
		s.before = func(_ context.Context, keys []string) {
			if strings.HasPrefix(keys[0], "stalls") {
				<-release // heeds no context, as a client may
			}
		}
		g := s.gatherer()
		var readers sync.WaitGroup
		for i := range held {
			readers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if a, _ := g.Do(ctx, fmt.Sprint("stalls", i)); !errors.Is(a.Err, context.DeadlineExceeded) {
					t.Errorf("got error %v, want the context's", a.Err)
				}
			})
			synctest.Wait()
		}
		for i := range 5 {
			read(t, g, fmt.Sprint("k", i), 500*time.Microsecond+quick)
		}
		readers.Wait()
		// What nobody waits for counts no more.
		read(t, g, "last", quick)
		close(release)
		time.Sleep(quick)
		g.Close()
	})
}

func TestAReadWhoseCallerLeftBeforeItBeganIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: quick}
		g := s.gatherer()
		var readers sync.WaitGroup
		hold(t, g, &readers, quick)
		ctx, cancel := context.WithTimeout(t.Context(), quick/2)
		defer cancel()
		if a, _ := g.Do(ctx, "left"); !errors.Is(a.Err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want the context's", a.Err)
		}
		readers.Wait()
		if _, shared := g.Do(ctx, "over"); shared {
			t.Error("shared")
		}
		time.Sleep(time.Second)
		if trips := s.asked(); len(trips) != held {
			t.Errorf("round trips %q, want those that held it up", trips)
		}
		read(t, g, "k", quick)
		g.Close()
	})
}

func TestAnErrorReachesAllOfABatchAndNobodyElse(t *testing.T) {
	bad := errors.New("bad")
	for what, fetch := range map[string]func(keys []string, answers []gather.Answer[string]){
		"error": func(keys []string, answers []gather.Answer[string]) {
			for i := range keys {
				answers[i].Err = bad
			}
		},
		"panic":  func([]string, []gather.Answer[string]) { panic("bad") },
		"Goexit": func([]string, []gather.Answer[string]) { runtime.Goexit() },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gather.New(gate.New(held), most, func(_ context.Context, keys []string, answers []gather.Answer[string]) {
					time.Sleep(quick)
					if strings.HasPrefix(keys[0], "bad") {
						fetch(keys, answers)
						return
					}
					for i, key := range keys {
						answers[i].Value = strings.ToUpper(key)
					}
				})
				for range 5 { // no slot is lost, neither of ours nor of the gate's
					var readers sync.WaitGroup
					hold(t, g, &readers, quick)
					for i := range 5 {
						readers.Go(func() {
							if a, _ := g.Do(t.Context(), fmt.Sprint("bad", i)); a.Err == nil {
								t.Error("got no error")
							}
						})
					}
					synctest.Wait()
					time.Sleep(quick)
					synctest.Wait()
					readers.Go(func() { read(t, g, "good", quick) })
					readers.Wait()
				}
				g.Close()
			})
		})
	}
}

func TestReadsThatWaitGoOnAfterAGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: quick}
		s.before = func(_ context.Context, keys []string) {
			if keys[0] != "k" {
				time.Sleep(quick)
				runtime.Goexit()
			}
		}
		g := s.gatherer()
		var readers sync.WaitGroup
		for i := range held {
			readers.Go(func() {
				if a, _ := g.Do(t.Context(), fmt.Sprint("bad", i)); a.Err == nil {
					t.Error("got no error")
				}
			})
			synctest.Wait()
		}
		read(t, g, "k", 2*quick)
		readers.Wait()
		g.Close()
	})
}

func TestCloseTurnsWaitersAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: quick}
		gt := gate.New(100)
		g := gather.New(gt, most, s.fetch)
		var readers sync.WaitGroup
		hold(t, g, &readers, quick) // those under way get their answers
		for i := range 5 {
			readers.Go(func() {
				if a, _ := g.Do(t.Context(), fmt.Sprint("waits", i)); !errors.Is(a.Err, tier.ErrClosed) {
					t.Errorf("who waited got error %v, want tier.ErrClosed", a.Err)
				}
			})
		}
		synctest.Wait()
		gt.Close()
		g.Close()
		g.Close()
		begun := time.Now()
		if a, _ := g.Do(t.Context(), "late"); !errors.Is(a.Err, tier.ErrClosed) || time.Since(begun) != 0 {
			t.Errorf("after Close: got error %v after %v, want tier.ErrClosed at once", a.Err, time.Since(begun))
		}
		readers.Wait()
		if got := len(s.asked()); got != held {
			t.Errorf("%d round trips, want %d", got, held)
		}
	}) // which fails if a goroutine is left
}

func TestAGateThatIsFullBoundsRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: time.Second}
		gt := gate.New(1)
		g := gather.New(gt, most, s.fetch)
		var readers sync.WaitGroup
		readers.Go(func() { read(t, g, "first", time.Second) })
		synctest.Wait()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if a, _ := g.Do(ctx, "waits"); !errors.Is(a.Err, context.DeadlineExceeded) {
				t.Errorf("got error %v, want the context's", a.Err)
			}
			cancel()
		}
		readers.Wait()
		if trips := s.asked(); len(trips) != 1 {
			t.Errorf("round trips %q, want one", trips)
		}
		read(t, g, "k", time.Second)
		g.Close()
	})
}

// TestUnderLoad is for the race detector: callers that come, leave and share while
// the gatherer is closed.
func TestUnderLoad(t *testing.T) {
	s := &server{}
	gt := gate.New(16)
	g := gather.New(gt, most, s.fetch)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for n := range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%7 == i%7 {
					go cancel()
				}
				key := fmt.Sprint("k", n%10, i%40)
				a, _ := g.Do(ctx, key)
				cancel()
				switch {
				case a.Err == nil && a.Value != strings.ToUpper(key):
					t.Errorf("%s: got %q", key, a.Value)
				case errors.Is(a.Err, tier.ErrClosed):
					return
				case a.Err != nil && !errors.Is(a.Err, context.Canceled):
					t.Error(a.Err)
				}
				if i == 0 && n == 400 {
					gt.Close()
					g.Close()
				}
			}
		})
	}
	all.Wait()
	gt.Drain(time.Minute)
}
