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
	begun   atomic.Bool // and may be over
	watches sync.Pool   // stopped ones

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

// stallwatch begins a spell while a round trip takes too long. It is used again and again.
type stallwatch struct {
	of    *spell
	began time.Time
	timer *time.Timer

	// Guarded by the spell's mutex.
	counted bool // among its stalls
	over    bool // the round trip is
}

// watch begins it unless what it returns is stopped before. That must be done once.
func (s *spell) watch() *stallwatch {
	w, ok := s.watches.Get().(*stallwatch)
	if !ok {
		w = &stallwatch{of: s, began: time.Now()}
		w.timer = time.AfterFunc(stalled, w.ring)
		return w
	}
	w.began = time.Now()
	w.timer.Reset(stalled)
	return w
}

func (w *stallwatch) ring() {
	s := w.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.over {
		w.counted = true
		s.stall()
	}
}

func (w *stallwatch) stop() {
	if w.timer.Stop() {
		w.of.watches.Put(w)
		return
	}
	s := w.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.over = true; w.counted {
		s.stalls--
		s.least = max(s.least, min(time.Since(w.began), apartFor))
		s.extend(s.least)
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
