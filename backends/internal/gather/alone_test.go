package gather_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/internal/gather"
	"github.com/terracecache/terrace/tier"
)

// by is who makes the reads that are alone: "by" and the key is the answer, some time later.
func by(took time.Duration, made *atomic.Int64) gather.Alone[string] {
	return func(_ context.Context, key string) (gather.Answer[string], bool) {
		made.Add(1)
		time.Sleep(took)
		return gather.Answer[string]{Value: "by " + key}, true
	}
}

func TestReadsThatAreAloneAreMadeByTheirCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		s := new(server)
		g := s.gatherer().WithAlone(by(time.Millisecond, &made))
		for i := range 10 {
			key := fmt.Sprint("k", i)
			if a, shared := g.Do(t.Context(), key); a.Value != "by "+key || a.Err != nil || shared {
				t.Errorf("%q, %v, %v", a.Value, a.Err, shared)
			}
		}
		if made.Load() != 10 || len(s.asked()) != 0 {
			t.Errorf("%d made alone, and %v", made.Load(), s.asked())
		}
		g.Close()
		if a, _ := g.Do(t.Context(), "k"); !errors.Is(a.Err, tier.ErrClosed) {
			t.Errorf("after Close: %q, %v", a.Value, a.Err)
		}
	})
}

func TestReadsBesideOneThatIsAloneDoNotWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = time.Second
		var made atomic.Int64
		s := &server{took: 10 * time.Millisecond}
		g := s.gatherer().WithAlone(by(slow, &made))
		var readers sync.WaitGroup
		readers.Go(func() { g.Do(t.Context(), "first") })
		synctest.Wait()
		for i := range 20 { // the fifth at a time and those after it wait for a round trip to end
			readers.Go(func() { read(t, g, fmt.Sprint("k", i%3), s.took) })
			synctest.Wait()
			time.Sleep(s.took)
		}
		readers.Wait()
		if made.Load() != 1 {
			t.Errorf("%d reads made alone, want 1", made.Load())
		}
		g.Close()
	})
}

// Who waits for few enough round trips goes on when a read that was alone has ended.
func TestThoseWhoWaitGoOnBehindOneThatWasAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const alone, others = 100 * time.Microsecond, time.Second
		var made atomic.Int64
		s := &server{took: others}
		g := s.gatherer().WithAlone(by(alone, &made))
		var readers sync.WaitGroup
		readers.Go(func() { g.Do(t.Context(), "first") })
		synctest.Wait()
		for i := range held - 1 {
			readers.Go(func() { read(t, g, fmt.Sprint("holds ", i), others) })
			synctest.Wait()
		}
		readers.Go(func() { read(t, g, "waits", alone+others) })
		readers.Wait()
		g.Close()
	})
}

func TestAReadThatCouldNotBeMadeAloneGoesTheOtherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		g := s.gatherer().WithAlone(func(context.Context, string) (a gather.Answer[string], ok bool) {
			return gather.Answer[string]{Err: errors.New("nobody's")}, false
		})
		for range 3 {
			read(t, g, "k", 0)
		}
		if n := len(s.asked()); n != 3 {
			t.Errorf("%d round trips, want 3", n)
		}
		g.Close()
	})
}

func TestAReadThatIsAloneAndPanicsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		panics := true
		g := s.gatherer().WithAlone(func(_ context.Context, key string) (a gather.Answer[string], ok bool) {
			if panics {
				panic("client")
			}
			return gather.Answer[string]{Value: "by " + key}, true
		})
		for range 3 {
			if a, _ := g.Do(t.Context(), "k"); a.Err == nil || !strings.Contains(a.Err.Error(), "client") {
				t.Errorf("%q, %v, want what the client panicked with", a.Value, a.Err)
			}
		}
		panics = false
		if a, _ := g.Do(t.Context(), "k"); a.Value != "by k" || a.Err != nil { // as nothing is counted as under way
			t.Errorf("behind it: %q, %v", a.Value, a.Err)
		}
		g.Close()
	})
}

// A crowd gathers also where one of it could go alone.
func TestACrowdDoesNotGoAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		s := &server{took: time.Millisecond}
		g := s.gatherer().WithAlone(by(time.Millisecond, &made))
		for range 3 {
			var readers sync.WaitGroup
			for i := range 60 {
				readers.Go(func() { g.Do(t.Context(), fmt.Sprint("k", i)) })
			}
			readers.Wait()
		}
		if n := made.Load(); n > 1 {
			t.Errorf("%d of three crowds' reads went alone, want the first of the first at most", n)
		}
		for range 100 { // and is forgotten
			g.Do(t.Context(), "k")
		}
		if n := made.Load(); n < 50 {
			t.Errorf("%d reads went alone behind the crowds, of 100", n)
		}
		g.Close()
	})
}
