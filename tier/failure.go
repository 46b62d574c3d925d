package tier

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Failure is an error of a store that knows what kind it is, such as a server's reply.
type Failure interface {
	error
	// FailureKind names the kind in a word or two, such as "OOM". It is one of few, and
	// holds no key, value or address.
	FailureKind() string
	// Outage reports whether the store cannot serve anything now, as opposed to having
	// refused this one call.
	Outage() bool
}

// Resting is a [Failure] of a part of the store that is not asked for a while, such as one
// server of several. A write that it has met is tried again as often as that.
type Resting interface {
	Failure
	// RetryAfter returns for how long the part is not asked, about.
	RetryAfter() time.Duration
}

// FailureKind names the kind of a store's error: "too large", "unencodable",
// "unreadable", "key", "closed", "unsupported", what a [Failure] says, "canceled",
// "timeout", "connection", or "other". It is "" for nil.
func FailureKind(err error) string {
	if err == nil {
		return ""
	}
	var f Failure
	var netErr net.Error
	switch {
	case errors.Is(err, ErrTooLarge):
		return "too large"
	case errors.Is(err, ErrUnencodable):
		return "unencodable"
	case errors.Is(err, ErrUnreadable):
		return "unreadable"
	case errors.Is(err, ErrBadKey):
		return "key"
	case errors.Is(err, ErrClosed):
		return "closed"
	case errors.Is(err, errors.ErrUnsupported):
		return "unsupported"
	case errors.As(err, &f):
		return f.FailureKind()
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return "timeout"
	case errors.As(err, &netErr), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection"
	default:
		return "other"
	}
}

// IsOutage reports whether a store's error says that the store cannot serve anything
// now: it does not answer, or cannot be reached, or a [Failure] says so. All else is an
// answer, which may be about one key alone and costs no waiting.
func IsOutage(err error) bool {
	if err == nil {
		return false
	}
	var f Failure
	switch kind := FailureKind(err); {
	case kind == "too large", kind == "unreadable":
		return false // though a reply may be what said so
	case errors.As(err, &f):
		return f.Outage() // whatever it holds
	default:
		return kind == "timeout" || kind == "connection"
	}
}
