package coordinator

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// One at a time has the turn, whoever gives up waiting, and nobody waits who could
// have it.
func TestTurnIsHeldByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var turn turn
		var wg sync.WaitGroup
		holders, gaveUp := 0, 0
		for i := range 20 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(1, uint64(i)))
				for range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(40))*time.Millisecond)
					mu.Lock()
					err := turn.takeWait(ctx, &mu)
					cancel()
					mu.Lock()
					if err != nil {
						gaveUp++
						mu.Unlock()
						continue
					}
					if holders++; holders != 1 {
						t.Errorf("%d have the turn", holders)
					}
					mu.Unlock()
					time.Sleep(time.Duration(rnd.IntN(3)) * time.Millisecond)
					mu.Lock()
					holders--
					turn.give()
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if turn.taken || turn.line != nil && turn.line.Len() > 0 {
			t.Errorf("at the end: %+v", turn)
		}
		if gaveUp == 0 {
			t.Error("nobody gave up, so that was not tried")
		}
	})
}

// Who takes turn after turn without ever waiting does not shut out one who waits.
func TestTurnComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var turn turn
		turn.take()
		var had bool
		go func() {
			mu.Lock()
			if err := turn.takeWait(t.Context(), &mu); err == nil {
				had = true
			}
		}()
		for gives := 0; ; gives++ {
			synctest.Wait() // until it waits, or has it
			if had {
				break
			}
			if gives > patience {
				t.Fatalf("still waits after %d turns of another", gives)
			}
			mu.Lock()
			turn.give()
			again := turn.take()
			if gives < patience && !again {
				t.Errorf("turn %d: kept for who waits, want free for who runs", gives)
			}
			mu.Unlock()
		}
	})
}

// A turn that comes at the moment in which its waiter gives up goes to the next.
func TestTurnIsNotLost(t *testing.T) {
	for _, tries := range []int{0, patience} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var turn turn
			turn.take()
			ctx, cancel := context.WithCancel(t.Context())
			first, second := make(chan error, 1), make(chan error, 1)
			wait := func(ctx context.Context, result chan<- error) {
				mu.Lock()
				result <- turn.takeWait(ctx, &mu)
			}
			go wait(ctx, first)
			synctest.Wait()
			for range tries {
				mu.Lock()
				turn.give()
				turn.take()
				mu.Unlock()
				synctest.Wait()
			}
			go wait(t.Context(), second)
			synctest.Wait()
			mu.Lock()
			turn.give()
			cancel()
			mu.Unlock()
			if err := <-first; !errors.Is(err, context.Canceled) {
				t.Errorf("after %d turns: who gave up got %v, want %v", tries, err, context.Canceled)
			}
			if err := <-second; err != nil {
				t.Errorf("after %d turns: who came next got %v, want the turn", tries, err)
			}
		})
	}
}
