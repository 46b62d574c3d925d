package memcached

import (
	"sync/atomic"
	"time"
)

const (
	// stalled is how long a round trip to servers that are not known takes at most
	// before further reads go alone: one server may be well where another is not.
	stalled = 50 * time.Millisecond

	// apartFor is how long reads go alone then.
	apartFor = 5 * time.Second
)

// spell is a time that begins anew each time something goes wrong. Its zero value is
// over.
type spell struct {
	begun atomic.Pointer[time.Time]
}

func (s *spell) begin() {
	now := time.Now()
	s.begun.Store(&now)
}

// beginAfter begins unless the function that it returns is called before.
func (s *spell) beginAfter(d time.Duration) (stop func()) {
	timer := time.AfterFunc(d, s.begin)
	return func() { timer.Stop() }
}

// lasts costs no look at the clock while all is well.
func (s *spell) lasts() bool {
	begun := s.begun.Load()
	if begun == nil {
		return false
	}
	if time.Since(*begun) < apartFor {
		return true
	}
	s.begun.CompareAndSwap(begun, nil)
	return false
}
