package config

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"time"
)

// WatchOptions are what [Watch] is told.
type WatchOptions struct {
	// Every is how often the file is looked at. Zero: half a second.
	Every time.Duration

	// Report is told what a new version of the file has come to, or why it was refused
	// and all stays as it is. It is called by one goroutine, one call after the other.
	Report func(Changes, error)
}

const (
	defaultEvery = 500 * time.Millisecond
	// missingLooks is how often in a row the file may be missing before that is
	// reported: whoever replaces a file may remove it first.
	missingLooks = 4
)

// Watch applies the changes of the set's file until the context ends, and returns its
// error. A version is applied when two looks in a row have found it, so that one that
// is still being written is not.
//
// It reads the file instead of asking the system for events: these differ between
// systems, are lost on network file systems, and come for the wrong file where an
// editor or Kubernetes puts a new one in the place of the old. Signals are the
// caller's: let SIGHUP call [Set.Reload].
func Watch(ctx context.Context, s *Set, o WatchOptions) error {
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.Report == nil {
		o.Report = func(Changes, error) {}
	}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	w := watcher{set: s, report: o.Report}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			w.look()
		}
	}
}

type watcher struct {
	set     *Set
	report  func(Changes, error)
	before  [sha256.Size]byte // what the last look found
	missing int
}

func (w *watcher) look() {
	data, err := os.ReadFile(w.set.path)
	if err != nil {
		w.missing++
		if w.missing == missingLooks || w.missing == 1 && !errors.Is(err, os.ErrNotExist) {
			w.report(Changes{}, fmt.Errorf("config: the file cannot be read, and its caches stay as they are: %w", err))
		}
		return
	}
	w.missing = 0
	sum := sha256.Sum256(data)
	stable := sum == w.before
	w.before = sum
	if stable && !w.set.hasSeen(sum) {
		w.report(w.set.apply(data))
	}
}

func (s *Set) hasSeen(sum [sha256.Size]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen == sum
}
