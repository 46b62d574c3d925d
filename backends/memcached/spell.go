package memcached

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// stalled is how long a round trip to servers that are not known takes at most
	// before further reads go alone: one server may be well where another is not.
	stalled = 50 * time.Millisecond

	// apartFor is how long reads go alone after an error, and after stalls at most.
	apartFor = 5 * time.Second
)

// spell is when reads go alone since together they failed or stalled. After a stall it is
// as long as that was, and twice as long as the last one where they follow each other: a
// process that was not run for a moment stalls once, a server that is slow again and again.
// Its zero value is over.
type spell struct {
	begun atomic.Bool // and may be over

	mu     sync.Mutex
	stalls int           // round trips under way that have stalled
	until  time.Time     // when it is over if there are none
	least  time.Duration // it lasts behind a stall
}

// begin begins it for an error.
func (s *spell) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extend(apartFor)
}

// beginAfter begins it unless the function that it returns is called before. That must be
// called.
func (s *spell) beginAfter(d time.Duration) (stop func()) {
	var (
		began        = time.Now()
		counted, end bool
	)
	timer := time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !end {
			counted = true
			s.stall()
		}
	})
	return func() {
		if timer.Stop() {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if end = true; counted {
			s.stalls--
			s.least = max(s.least, min(time.Since(began), apartFor))
			s.extend(s.least)
		}
	}
}

// stall notes a stall that has begun. It is called with the mutex.
func (s *spell) stall() {
	switch {
	case !s.isOver():
	case time.Since(s.until) >= apartFor:
		s.least = 0
	default:
		s.least = min(2*s.least, apartFor)
	}
	s.stalls++
	s.begun.Store(true)
}

// extend is called with the mutex.
func (s *spell) extend(d time.Duration) {
	if until := time.Now().Add(d); until.After(s.until) {
		s.until = until
	}
	s.begun.Store(true)
}

// isOver is called with the mutex.
func (s *spell) isOver() bool { return s.stalls == 0 && !time.Now().Before(s.until) }

// lasts costs no look at the clock while all is well.
func (s *spell) lasts() bool {
	if !s.begun.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	over := s.isOver()
	if over {
		s.begun.Store(false)
	}
	return !over
}
