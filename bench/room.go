package main

import (
	"context"
	"sync"
)

// room is memory that jobs share: as many run at a time as there is room for, and at least
// one. Estimates will do for it.
type room struct {
	mu    sync.Mutex
	left  int64
	of    int64
	freed chan struct{} // closed when there is more
}

func newRoom(bytes int64) *room {
	return &room{left: bytes, of: bytes, freed: make(chan struct{})}
}

// take waits until there is room for so many bytes, or the context has ended. What is
// returned gives them back.
func (r *room) take(ctx context.Context, bytes int64) (release func()) {
	bytes = min(bytes, r.of)
	for {
		r.mu.Lock()
		if r.left >= bytes {
			r.left -= bytes
			r.mu.Unlock()
			return func() { r.give(bytes) }
		}
		freed := r.freed
		r.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return func() {}
		}
	}
}

func (r *room) give(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += bytes
	close(r.freed)
	r.freed = make(chan struct{})
}
