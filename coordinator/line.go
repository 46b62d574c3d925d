package coordinator

import (
	"container/list"
	"context"
	"sync"
)

// line holds those who wait for something that one mutex guards, first come first
// served.
type line struct{ list.List } // of chan struct{}

// wait stands in line until it is passed the thing or the context ends; what it was
// passed at that very moment it gives back with pass. It is called with mu held and
// returns with mu free.
func (l *line) wait(ctx context.Context, mu *sync.Mutex, pass func()) error {
	mine := make(chan struct{})
	place := l.PushBack(mine)
	mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	mu.Lock()
	defer mu.Unlock()
	select {
	case <-mine:
		pass()
	default:
		l.Remove(place)
	}
	return ctx.Err()
}

// next passes the thing to the first in line and reports whether there was one. The
// mutex is held.
func (l *line) next() bool {
	first := l.Front()
	if first == nil {
		return false
	}
	close(l.Remove(first).(chan struct{}))
	return true
}
