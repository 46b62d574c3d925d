package memcached

import (
	"time"

	"github.com/terracecache/terrace/tier"
)

// LeftAloneError says that a server has not answered of late, and so was not asked, or that a
// call which it had got before has failed too. It is [tier.Resting]: the store serves the keys
// of the others.
type LeftAloneError struct {
	Server string
	Err    error // of a call that was made; nil where none was
}

func (e *LeftAloneError) Error() string {
	text := "server " + e.Server + " is left alone: it has not answered of late"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the error of the call, or nil.
func (e *LeftAloneError) Unwrap() error { return e.Err }

// FailureKind implements [tier.Failure].
func (e *LeftAloneError) FailureKind() string { return "server left alone" }

// Outage implements [tier.Failure].
func (e *LeftAloneError) Outage() bool { return false }

// RetryAfter implements [tier.Resting].
func (e *LeftAloneError) RetryAfter() time.Duration { return aloneFor }

// ServerError is the failure of a call to one of several servers, of which another has
// answered since this one does not: so it is no outage of the store.
type ServerError struct {
	Server string
	Err    error
}

func (e *ServerError) Error() string { return "server " + e.Server + ": " + e.Err.Error() }

// Unwrap returns the failure.
func (e *ServerError) Unwrap() error { return e.Err }

// FailureKind implements [tier.Failure].
func (e *ServerError) FailureKind() string { return tier.FailureKind(e.Err) }

// Outage implements [tier.Failure].
func (e *ServerError) Outage() bool { return false }

var (
	_ tier.Resting = (*LeftAloneError)(nil)
	_ tier.Failure = (*ServerError)(nil)
)
