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

// Budgets that begin and are released in any order end each at its own time, and
// nothing is left of those that were released.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 50 * time.Millisecond
		q := newDeadlines(limit)
		d := newDetached()
		var calls sync.WaitGroup
		for seed := range uint64(500) {
			r := rand.New(rand.NewPCG(seed, 1))
			calls.Go(func() {
				time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
				b, began := d.within(q), time.Now()
				defer b.release()
				if r.IntN(2) == 0 {
					time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
					if err := b.Err(); err != nil {
						t.Errorf("after %v: got error %v, want none", time.Since(began), err)
					}
					return
				}
				<-b.Done()
				if took := time.Since(began); took != limit || !errors.Is(b.Err(), context.DeadlineExceeded) {
					t.Errorf("ended after %v with %v, want after %v with the deadline exceeded", took, b.Err(), limit)
				}
			})
		}
		calls.Wait()
		if q.first != nil || q.last != nil || d.hooks != nil {
			t.Error("budgets are left in line")
		}
		q.rest()
		if q.armed {
			t.Error("the timer is left running")
		}
		b := d.within(q)
		<-b.Done() // also after a rest
		b.release()
	})
}
