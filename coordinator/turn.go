package coordinator

import (
	"container/list"
	"context"
	"sync"
)

// turn is the right to write one key's tiers, which one at a time has. It is guarded
// by a mutex, and not held under it.
//
// Who gives it back wakes the first in line but does not keep it for them: whoever
// runs takes it, as with sync.Mutex. If it were handed on, writers of a much written
// key would all have to wait for each other to be scheduled, for as long as there is
// one in line. Only who was woken in vain patience times is handed it.
type turn struct {
	taken bool
	line  *list.List // of *turnWaiter; nil until somebody waits, which is seldom
}

type turnWaiter struct {
	woken chan struct{} // closed when it is out of the line
	heir  bool          // wants to be handed the turn; then woken means that it was
}

const patience = 4

// take takes the turn if nobody has it. The mutex is held.
func (t *turn) take() bool {
	if t.taken {
		return false
	}
	t.taken = true
	return true
}

// takeWait is take that waits until the context ends. It is called with the mutex held
// and returns with it free.
func (t *turn) takeWait(ctx context.Context, mu *sync.Mutex) error {
	defer mu.Unlock()
	for tries := 0; !t.take(); tries++ {
		w := &turnWaiter{woken: make(chan struct{}), heir: tries >= patience}
		place := t.stand(w, tries == 0)
		mu.Unlock()
		select {
		case <-w.woken:
		case <-ctx.Done():
		}
		mu.Lock()
		select {
		case <-w.woken:
			if w.heir {
				if ctx.Err() == nil {
					return nil
				}
				t.taken = false
			}
		default:
			t.line.Remove(place)
			return ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			t.wake() // whom it was woken in place of
			return err
		}
	}
	return nil
}

// stand puts a waiter at the end of the line, or, who has waited before, at its head.
func (t *turn) stand(w *turnWaiter, last bool) *list.Element {
	if t.line == nil {
		t.line = list.New()
	}
	if last {
		return t.line.PushBack(w)
	}
	return t.line.PushFront(w)
}

// give ends a turn. The mutex is held.
func (t *turn) give() {
	t.taken = false
	t.wake()
}

// wake tells the first in line that the turn is free, or hands it over. It does
// nothing while somebody has it, who will do it at the end. The mutex is held.
func (t *turn) wake() {
	if t.taken || t.line == nil {
		return
	}
	if first := t.line.Front(); first != nil {
		w := t.line.Remove(first).(*turnWaiter)
		t.taken = w.heir
		close(w.woken)
	}
}
