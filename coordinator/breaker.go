package coordinator

import (
	"context"
	"errors"
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
type breaker struct {
	circuit *gobreaker.TwoStepCircuitBreaker[struct{}]
	probe   time.Duration
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
			IsExcluded:   func(err error) bool { return errors.Is(err, errCallerLeft) },
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

// allow returns ErrSkipped while the tier is to be left alone, else a function that
// must be told what the call has come to.
func (b *breaker) allow() (done func(error), err error) {
	if b == nil {
		return func(error) {}, nil
	}
	done, err = b.circuit.Allow()
	if err != nil {
		return nil, ErrSkipped
	}
	return done, nil
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

// judged returns what a call says of its tier: nothing, if it ended because its
// caller left.
func judged(caller context.Context, err error) error {
	if err != nil && caller.Err() != nil {
		return errCallerLeft
	}
	return err
}
