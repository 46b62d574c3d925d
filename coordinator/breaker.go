package coordinator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/terracecache/terrace/tier"
)

// breaker keeps calls away from a shared tier that does not answer, so that they cost
// nothing instead of the tier's time limit (S1). After some failures in a row it is
// open: calls are skipped. After a while it lets one through, the probe, and closes if
// that succeeds.
//
// It is asked in one place, level.bounded, for reads, writes and repeated writes alike.
//
// While all goes well nobody asks the circuit, which would have all calls share its lock
// and look at the time.
type breaker struct {
	circuit  *gobreaker.TwoStepCircuitBreaker[struct{}]
	probe    time.Duration
	troubled atomic.Bool // calls are counted: one has failed and none succeeded since

	mu sync.Mutex // held while what a call came to is counted
}

const (
	// defaultFailures is low: a tier that does not answer costs each of them its time
	// limit, and one that is skipped for a moment without need costs a few loads.
	defaultFailures = 2
	defaultProbe    = time.Second
)

// newBreaker returns nil where there is to be none.
func newBreaker(o tier.Breaker, closed func()) *breaker {
	if o.Off {
		return nil
	}
	if o.Failures == 0 {
		o.Failures = defaultFailures
	}
	if o.Probe == 0 {
		o.Probe = defaultProbe
	}
	return &breaker{
		probe: o.Probe,
		circuit: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
			MaxRequests:  1,
			Timeout:      o.Probe,
			ReadyToTrip:  func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= o.Failures },
			IsSuccessful: func(err error) bool { return !tier.IsOutage(err) },
			IsExcluded:   saysNothing,
			OnStateChange: func(_ string, _, to gobreaker.State) {
				if to == gobreaker.StateClosed {
					closed()
				}
			},
		}),
	}
}

// errCallerLeft marks what a call came to whose caller's context ended before the
// tier's own limit: it says nothing of the tier.
var errCallerLeft = errors.New("the caller left")

// allow returns ErrSkipped while the tier is to be left alone. What the call has come
// to must be told to report, with the permit.
func (b *breaker) allow() (p permit, err error) {
	if b == nil || !b.troubled.Load() {
		return p, nil
	}
	if p.done, err = b.circuit.Allow(); err != nil {
		return permit{}, ErrSkipped
	}
	return p, nil
}

// permit is that of one call.
type permit struct {
	done func(error) // nil where the call is not counted if it succeeds
}

// report counts what a call came to.
func (b *breaker) report(p permit, err error) {
	if b == nil || p.done == nil && !tier.IsOutage(err) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.done == nil {
		// What began in good times says nothing of a tier that was given up since.
		if b.circuit.State() != gobreaker.StateClosed {
			return
		}
		b.troubled.Store(true)
		done, refused := b.circuit.Allow()
		if refused != nil {
			return
		}
		p.done = done
	}
	p.done(err)
	if b.circuit.State() == gobreaker.StateClosed && b.circuit.Counts().ConsecutiveFailures == 0 {
		b.troubled.Store(false)
	}
}

// isOpen reports whether calls are skipped now.
func (b *breaker) isOpen() bool { return b != nil && b.circuit.State() == gobreaker.StateOpen }

// state names the state.
func (b *breaker) state() string {
	if b == nil {
		return ""
	}
	return b.circuit.State().String()
}

// saysNothing reports whether what a call came to is neither a failure of the tier nor an
// answer: its caller left, or a part of the tier that rests was not asked.
func saysNothing(err error) bool {
	var part tier.Resting
	return errors.Is(err, errCallerLeft) || errors.As(err, &part)
}

// judged returns what a call says of its tier: nothing, if it ended because its
// caller left.
func judged(caller context.Context, err error) error {
	if err != nil && caller.Err() != nil {
		return errCallerLeft
	}
	return err
}
