package main

import (
	"context"
	"sync"
	"time"

	"github.com/terracecache/terrace/bench/internal/history"
)

// stallFrom is how long something takes that takes no time before the machine is taken to
// have had no time for it.
const stallFrom = 10 * time.Millisecond

// stalls are the times in which something was not run.
type stalls struct {
	mu    sync.Mutex
	spans []history.Span
}

// watch does something that takes no time, every millisecond until the context ends, and
// notes when it took long, with the wait before it.
func (s *stalls) watch(ctx context.Context, do func()) {
	for began := fleetNow(); ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
		do()
		now := fleetNow()
		if now-began > int64(stallFrom) {
			s.mu.Lock()
			s.spans = append(s.spans, history.Span{Begin: began, End: now})
			s.mu.Unlock()
		}
		began = now
	}
}

// take returns what was noted since it was last asked.
func (s *stalls) take() []history.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	spans := s.spans
	s.spans = nil
	return spans
}
