package gate_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/internal/gate"
	"github.com/terracecache/terrace/tier"
)

func TestACallerLeavesOnTimeAndTheCallKeepsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		slow := func() (int, error) { time.Sleep(time.Second); return 1, nil }
		if _, err := gate.Do(ctx, g, slow); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want the context's", err)
		}
		if took := time.Since(start); took != 10*time.Millisecond {
			t.Errorf("the caller left after %v, want 10ms", took)
		}

		waiting, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := gate.Do(waiting, g, slow); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the slot is held: got error %v, want the context's", err)
		}
		got, err := gate.Do(t.Context(), g, func() (int, error) { return 2, nil })
		if got != 2 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("the slot was free after %v, want 1s", took)
		}
	})
}

func TestCloseTurnsWaitersAwayAndDrainWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(1)
		start := time.Now()
		results := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := gate.Do(t.Context(), g, func() (int, error) { time.Sleep(time.Second); return 0, nil })
				results <- err
			}()
		}
		synctest.Wait()
		if !g.Close() || g.Close() {
			t.Error("Close: want true once")
		}
		if err := <-results; !errors.Is(err, tier.ErrClosed) {
			t.Errorf("who waited for a slot got %v, want tier.ErrClosed", err)
		}
		g.Drain(time.Minute)
		if took := time.Since(start); took != time.Second {
			t.Errorf("drained after %v, want 1s", took)
		}
		if err := <-results; err != nil {
			t.Errorf("the call under way got %v", err)
		}
		if _, err := gate.Do(t.Context(), g, func() (int, error) { return 0, nil }); !errors.Is(err, tier.ErrClosed) {
			t.Errorf("after Close: got error %v, want tier.ErrClosed", err)
		}
	})
}

func TestDrainGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(2)
		release := make(chan struct{})
		defer close(release)
		go gate.Do(t.Context(), g, func() (int, error) { <-release; return 0, nil })
		synctest.Wait()
		start := time.Now()
		g.Close()
		g.Drain(time.Second)
		if took := time.Since(start); took != time.Second {
			t.Errorf("gave up after %v, want 1s", took)
		}
	})
}

func TestAPanicIsAnError(t *testing.T) {
	if _, err := gate.Do(t.Context(), gate.New(1), func() (int, error) { panic("x") }); err == nil {
		t.Error("got no error")
	}
}

func TestGoexitIsAnError(t *testing.T) {
	g := gate.New(1)
	for range 2 { // it has left its slot
		if v, err := gate.Do(t.Context(), g, func() (int, error) { runtime.Goexit(); return 1, nil }); err == nil || v != 0 {
			t.Errorf("got %d, %v, want an error", v, err)
		}
	}
}
