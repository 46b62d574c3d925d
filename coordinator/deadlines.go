package coordinator

import (
	"context"
	"sync"
	"time"
)

// deadlines ends budgets of one level when their time is over. As all have the same
// limit they end in the order in which they began, so that one timer, for the first of
// them, serves all, and few calls have to set it.
type deadlines struct {
	limit time.Duration
	epoch time.Time // of its clock; when the level was made

	mu          sync.Mutex
	first, last *budget
	timer       *time.Timer
	armed       bool
	resting     bool     // the timer is to stop with the last call
	_           [64]byte // keeps neighbours off these cache lines
}

// setLimit comes before all else.
func (q *deadlines) setLimit(d time.Duration) { q.limit, q.epoch = d, time.Now() }

// now returns the time since the epoch, which takes a third of the place of a [time.Time].
func (q *deadlines) now() time.Duration { return time.Since(q.epoch) }

// over returns when the time of what begins now is over.
func (q *deadlines) over() time.Duration { return addDurations(q.now(), q.limit) }

// add puts a new budget, whose deadline is the limit from now, in line.
func (q *deadlines) add(b *budget) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.queued = true
	b.earlier = q.last
	if q.last != nil {
		q.last.later = b
	} else {
		q.first = b
	}
	q.last = b
	if !q.armed {
		q.arm(q.limit)
	}
}

// remove takes out a budget that is not needed any more. The timer is left as it is, until
// a rest: it finds out by itself.
func (q *deadlines) remove(b *budget) (unheed func() bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unlink(b)
	unheed, b.unheed = b.unheed, nil
	if q.resting {
		q.stop()
	}
	return unheed
}

func (q *deadlines) unlink(b *budget) {
	if !b.queued {
		return
	}
	b.queued = false
	if b.earlier != nil {
		b.earlier.later = b.later
	} else {
		q.first = b.later
	}
	if b.later != nil {
		b.later.earlier = b.earlier
	} else {
		q.last = b.earlier
	}
	b.earlier, b.later = nil, nil
}

func (q *deadlines) arm(d time.Duration) {
	q.armed = true
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.ring)
	} else {
		q.timer.Reset(d)
	}
}

// ring ends the budgets that are over. It holds the lock meanwhile: one that has been
// removed may be another call's by now.
func (q *deadlines) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = false
	now := q.now()
	for q.first != nil {
		if rest := q.first.over - now; rest > 0 {
			q.arm(rest)
			break
		}
		b := q.first
		q.unlink(b)
		b.end(context.DeadlineExceeded)
	}
}

// lanes are the deadlines of one level, in parts, so that calls on several cores do not
// meet in one list.
type lanes [8]deadlines

func (l *lanes) limit(d time.Duration) {
	for i := range l {
		l[i].setLimit(d)
	}
}

// lane returns the part that the flight's calls are in.
func (l *lanes) lane(d *detached) *deadlines { return &l[int(d.lane)%len(l)] }

func (l *lanes) rest() {
	for i := range l {
		l[i].rest()
	}
}

// rest stops the timer as soon as nobody needs it: no calls are to come, and Close leaves
// those under way to end by themselves.
func (q *deadlines) rest() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.resting = true
	q.stop()
}

// stop stops the timer if nobody needs it. It is called with the lock.
func (q *deadlines) stop() {
	if q.armed && q.first == nil {
		q.timer.Stop()
		q.armed = false
	}
}
