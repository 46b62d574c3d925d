package coordinator

import (
	"fmt"
	"sync"
	"testing"

	"github.com/terracecache/terrace/tier"
)

// What is there of a forgotten key from before is doubted, whatever was forgotten since; what
// was loaded later is not, and of other keys little is.
func TestForgottenKeys(t *testing.T) {
	const keys = 1000
	f := newForgotten[string]()
	for i := range keys {
		f.note(fmt.Sprint("forgotten", i), tier.Instant(100+i), tier.Instant(5000+i))
	}
	others := 0
	for i := range keys {
		key, other := fmt.Sprint("forgotten", i), fmt.Sprint("other", i)
		if !f.doubts(key, tier.Instant(100+i)) || !f.doubts(key, -1<<40) {
			t.Errorf("%s is not doubted", key)
		}
		if f.doubts(key, 100+keys) || f.doubts(other, 100+keys) {
			t.Errorf("%s or %s is doubted, loaded since", key, other)
		}
		if f.doubts(other, 0) {
			others++
		}
	}
	if others > keys/100 {
		t.Errorf("%d of %d other keys are doubted", others, keys)
	}
	if f.isOver(5000+keys-1) || !f.isOver(5000+keys) {
		t.Error("it is over when all is dead, and not before")
	}
}

// A reader finds each write that a level lacks among those that wait or those that were
// forgotten, whatever is put, done and forgotten meanwhile.
func TestForgottenWhileRead(t *testing.T) {
	const keys, rounds = 64, 25
	r := newRepeats[int, int](keys / 4)
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	var noted [keys]struct {
		sync.Mutex
		at tier.Instant
	}
	for w := range 2 {
		writers.Go(func() {
			for range rounds {
				for key := w; key < keys; key += 2 {
					n := &noted[key]
					at := tier.Now()
					r.put(key, repeat[int, int]{at: at, loaded: key%3 == 0}, tier.Never)
					n.Lock()
					n.at = at
					n.Unlock()
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				for key := range keys {
					n := &noted[key]
					n.Lock()
					at := n.at
					n.Unlock()
					if at == 0 {
						continue
					}
					if w, waits := r.get(key); waits && w.at >= at {
						continue
					}
					if f := r.forgotten.Load(); f == nil || !f.doubts(key, at) {
						t.Errorf("a write of key %d is neither remembered nor doubted", key)
						return
					}
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// A level that was cleared holds nothing of what had been forgotten until then.
func TestForgottenEndsWithAClear(t *testing.T) {
	r := newRepeats[int, int](1)
	for key := range 3 {
		r.put(key, repeat[int, int]{at: tier.Now()}, tier.Never)
	}
	before := r.forgotten.Load().last - 1
	if r.forget(before); r.forgotten.Load() == nil {
		t.Error("what was forgotten after the clear began is trusted")
	}
	if r.forget(tier.Now()); r.forgotten.Load() != nil {
		t.Error("what was forgotten before the clear began is doubted")
	}
	if r.trustAgain(tier.Never) {
		t.Error("there is nothing more to be trusted again")
	}
}
