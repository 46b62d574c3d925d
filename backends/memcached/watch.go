package memcached

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/tier"
)

// Of several servers one that does not answer while others do is left alone, so that its keys
// fail at once and its silence is not taken for that of all. Where none answers, or there is
// one alone, a cache's breaker is enough.

const (
	// enoughFailures, one after the other and without an answer between them, have a server
	// left alone.
	enoughFailures = 2
	// aloneFor is for how long. Then one call asks it, and others do once that is answered.
	aloneFor = time.Second
	// leastWait is how long a caller has waited at least whose leaving tells something of
	// the server.
	leastWait = 20 * time.Millisecond
	// justBefore is how long before a call that failed at once another server's answer still
	// tells that it is not all of them: there was no time for one since.
	justBefore = 100 * time.Millisecond
)

// watch sees how one server of several answers. An answer counts where somebody waited for
// it; a failure where nobody had an answer since its call began, and that began after the
// last one was counted: else one moment of silence would be as many failures as there are
// calls under way, and dials that fail would count against connections that work.
type watch struct {
	name   string
	others []*watch
	epoch  time.Time // of all its times, and of the others'

	answered atomic.Int64 // when it did last
	silent   atomic.Int64 // when the first of the calls began that have failed since
	since    atomic.Int64 // from when on an answer of another tells that it is not all of them
	alone    atomic.Bool

	mu       sync.Mutex
	failures int
	counted  time.Duration // when the last of them was
	until    time.Duration // when it may be asked again while it is left alone
}

// never is before all times.
const never = math.MinInt64

// watchAll makes watches for servers of these names. One alone is not watched.
func watchAll(names []string) []*watch {
	all := make([]*watch, len(names))
	if len(names) == 1 {
		return all
	}
	epoch := time.Now()
	for i, name := range names {
		all[i] = &watch{name: name, epoch: epoch}
		all[i].answered.Store(never)
		all[i].silent.Store(never)
		all[i].since.Store(never)
	}
	for i, w := range all {
		for j, other := range all {
			if i != j {
				w.others = append(w.others, other)
			}
		}
	}
	return all
}

func (w *watch) now() time.Duration { return time.Since(w.epoch) }

// ask reports when a call begins, or that it must not: of a server that is left alone it lets
// one through in aloneFor. Where the others do not answer either it lets all through, as there
// is nothing then that the call could harm, and the breaker's probe must not be refused.
func (w *watch) ask() (began time.Duration, err error) {
	if w == nil {
		return 0, nil
	}
	began = w.now()
	if !w.alone.Load() {
		return began, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alone.Load() && w.othersAnswer() {
		if began < w.until {
			return 0, &LeftAloneError{Server: w.name}
		}
		w.until = began + aloneFor
	}
	return began, nil
}

// askAgain has the next call ask a server that is left alone, as one that did has left.
func (w *watch) askAgain() {
	if w.alone.Load() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.until = w.now()
	}
}

// hasAnswered notes an answer that somebody waited for.
func (w *watch) hasAnswered() {
	if w == nil {
		return
	}
	w.answered.Store(int64(w.now()))
	if w.alone.Load() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.alone.Store(false)
		w.failures = 0
	}
}

// failed notes that a call was not answered.
func (w *watch) failed(began time.Duration) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, answered := w.now(), time.Duration(w.answered.Load())
	switch {
	case w.alone.Load() || answered >= began || w.failures > 0 && began < w.counted:
		return
	case w.failures > 0 && answered >= w.counted:
		w.failures = 0 // there was an answer between them
	}
	w.counted = now
	if w.failures++; w.failures == 1 {
		since := began
		if now-began < leastWait {
			since -= justBefore
		}
		w.silent.Store(int64(began))
		w.since.Store(int64(since))
	}
	if w.failures >= enoughFailures {
		w.until = now + aloneFor
		w.alone.Store(true)
	}
}

// note notes what came of a call, whether somebody waits for it or not: a failure, or an answer
// that came after the time of all who waited.
func (w *watch) note(ctx context.Context, began time.Duration, err error) {
	if w == nil {
		return
	}
	late := false
	if w.now()-began >= leastWait {
		deadline, limited := ctx.Deadline()
		late = limited && !time.Now().Before(deadline)
	}
	if late || !isAnswer(err) {
		w.failed(began)
	}
}

// end notes what came of a call for its caller, and returns what he is to be told.
func (w *watch) end(began time.Duration, err error) error {
	switch {
	case w == nil || errors.Is(err, tier.ErrClosed):
		return err
	case errors.Is(err, context.Canceled):
		w.askAgain()
		return err
	case isAnswer(err):
		w.hasAnswered()
		return err
	case w.now()-began >= leastWait || !errors.Is(err, context.DeadlineExceeded):
		w.failed(began)
	}
	switch {
	case !w.othersAnswer():
		return err
	case w.alone.Load():
		return &LeftAloneError{Server: w.name, Err: err}
	default:
		return &ServerError{Server: w.name, Err: err}
	}
}

// isAnswer reports whether what came of a call tells that its server answers.
func isAnswer(err error) bool {
	return err == nil || isReply(err) || slices.ContainsFunc(answers, func(of error) bool { return errors.Is(err, of) })
}

var answers = []error{memcache.ErrCacheMiss, memcache.ErrCASConflict, memcache.ErrNotStored, tier.ErrTooLarge, errContended, errOutcomeUnknown}

// othersAnswer reports whether another server has answered since this one does not, and has
// not failed since.
func (w *watch) othersAnswer() bool {
	since := w.since.Load()
	for _, other := range w.others {
		if answered := other.answered.Load(); answered > since && answered > other.silent.Load() {
			return true
		}
	}
	return false
}
