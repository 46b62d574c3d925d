package coordinator

import (
	"context"
	"sync"
	"time"
)

// deadlines ends the budgets of one level when their time is over. As all have the same
// limit they end in the order in which they began, so that one timer, for the first of
// them, serves all, and few calls have to set it.
type deadlines struct {
	limit time.Duration

	mu          sync.Mutex
	first, last *budget
	timer       *time.Timer
	armed       bool
}

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

// remove takes out a budget that is not needed any more. The timer is left as it is:
// it finds out by itself.
func (q *deadlines) remove(b *budget) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unlink(b)
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

// ring ends the budgets that are over.
func (q *deadlines) ring() {
	var over []*budget
	q.mu.Lock()
	q.armed = false
	now := time.Now()
	for q.first != nil {
		if rest := q.first.deadline.Sub(now); rest > 0 {
			q.arm(rest)
			break
		}
		over = append(over, q.first)
		q.unlink(q.first)
	}
	q.mu.Unlock()
	for _, b := range over {
		b.end(context.DeadlineExceeded)
	}
}

// rest stops the timer if nobody needs it.
func (q *deadlines) rest() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.armed && q.first == nil {
		q.timer.Stop()
		q.armed = false
	}
}
