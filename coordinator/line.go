package coordinator

import (
	"context"
	"slices"
	"sync"
)

// line holds those who wait for something that one mutex guards, first come first
// served.
type line []chan struct{}

// wait stands in line until it is passed the thing or the context ends; what it was
// passed at that very moment it gives back with pass. It is called with mu held and
// returns with mu free.
func (l *line) wait(ctx context.Context, mu *sync.Mutex, pass func()) error {
	mine := make(chan struct{})
	*l = append(*l, mine)
	mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	mu.Lock()
	defer mu.Unlock()
	if i := slices.Index(*l, mine); i >= 0 {
		*l = slices.Delete(*l, i, i+1)
	} else {
		pass()
	}
	return ctx.Err()
}

// next passes the thing to the first in line and reports whether there was one. The
// mutex is held.
func (l *line) next() bool {
	if len(*l) == 0 {
		return false
	}
	close((*l)[0])
	if *l = (*l)[1:]; len(*l) == 0 {
		*l = nil
	}
	return true
}
