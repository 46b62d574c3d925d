package tier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/terracecache/terrace/tier"
)

type reply struct{ outage bool }

func (reply) Error() string       { return "OOM" }
func (reply) FailureKind() string { return "OOM" }
func (r reply) Outage() bool      { return r.outage }

func TestFailureKind(t *testing.T) {
	for _, test := range []struct {
		err    error
		kind   string
		outage bool
	}{
		{nil, "", false},
		{reply{}, "OOM", false},
		{reply{outage: true}, "OOM", true},
		{fmt.Errorf("%w: %w", tier.ErrTooLarge, reply{}), "too large", false},
		{&tier.UnreadableError{Reason: "magic"}, "unreadable", false},
		{tier.ErrUnencodable, "unencodable", false},
		{tier.ErrBadKey, "key", false},
		{tier.ErrClosed, "closed", false},
		{errors.ErrUnsupported, "unsupported", false},
		{context.Canceled, "canceled", false},
		{context.DeadlineExceeded, "timeout", true},
		{os.ErrDeadlineExceeded, "timeout", true},
		{&net.DNSError{IsTimeout: true}, "timeout", true},
		{&net.DNSError{IsNotFound: true}, "connection", true},
		{syscall.ECONNREFUSED, "connection", true},
		{io.EOF, "connection", true},
		{errors.New("what"), "other", false},
	} {
		for _, err := range []error{test.err, wrapped(test.err)} {
			if got := tier.FailureKind(err); got != test.kind {
				t.Errorf("FailureKind(%v) = %q, want %q", err, got, test.kind)
			}
			if got := tier.IsOutage(err); got != test.outage {
				t.Errorf("IsOutage(%v) = %v, want %v", err, got, test.outage)
			}
		}
	}
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("get: %w", err)
}
