package memcached

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/internal/gate"
	"github.com/terracecache/terrace/tier"
)

// call runs op, which calls the server by its client, within the context.
func call[T any](ctx context.Context, s *Store, sv *server, doing string, op func() (T, error)) (T, error) {
	return callBy(ctx, s, sv, sv.gate, doing, op)
}

// callBy is call of an op that passes the gate.
func callBy[T any](ctx context.Context, s *Store, sv *server, by *gate.Gate, doing string, op func() (T, error)) (T, error) {
	var none T
	began, err := s.begin(ctx, sv)
	if err != nil {
		return none, s.wrap(doing, err)
	}
	value, err := gate.Do(ctx, by, func() (T, error) {
		value, err := op()
		sv.watch.note(ctx, began, err)
		return value, err
	})
	return value, s.wrap(doing, sv.watch.end(began, err))
}

// begin reports when a call of the server begins, or why it must not.
func (s *Store) begin(ctx context.Context, sv *server) (began time.Duration, err error) {
	switch {
	case s.invalid != nil:
		return 0, s.invalid
	case s.closed.Load(): // all servers' gates may not be yet
		return 0, tier.ErrClosed
	case sv.watch == nil:
		return 0, nil
	}
	if err := ctx.Err(); err != nil { // or it would be the one call that asks a server left alone
		return 0, err
	}
	return sv.watch.ask()
}

// wrap says what failed, and gives the errors of a closed store one identity.
func (s *Store) wrap(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case s.invalid != nil:
		return s.invalid
	case errors.Is(err, tier.ErrClosed):
		return tier.ErrClosed
	case s.ours() && s.closed.Load() && !isReply(err):
		return fmt.Errorf("terrace/memcached: %s: %w (%w)", doing, tier.ErrClosed, err)
	default:
		return fmt.Errorf("terrace/memcached: %s: %w", doing, err)
	}
}

// do is call for what answers nothing.
func do(ctx context.Context, s *Store, sv *server, doing string, op func() error) error {
	_, err := call(ctx, s, sv, doing, func() (struct{}, error) { return struct{}{}, op() })
	return err
}

// ReplyError is an answer by which a server says that it has not done what it was
// asked, for example "SERVER_ERROR out of memory storing object". It is a [tier.Failure]
// whose kind is the reply's first word: ERROR, CLIENT_ERROR or SERVER_ERROR.
type ReplyError struct{ Reply string }

// unexpected is the kind of an answer that is none of the protocol's errors.
const unexpected = "unexpected"

func (e *ReplyError) Error() string { return e.Reply }

// FailureKind implements [tier.Failure].
func (e *ReplyError) FailureKind() string {
	switch word, _, _ := strings.Cut(e.Reply, " "); word {
	case "ERROR", "CLIENT_ERROR", "SERVER_ERROR":
		return word
	default:
		return unexpected
	}
}

// Outage implements [tier.Failure]: a server that answers has refused this call alone.
func (e *ReplyError) Outage() bool { return false }

// replied gives an answer that gomemcache did not expect, and knows as a text only,
// its type. What is no error of the server's may be part of a value, and is left out.
func replied(err error) error {
	if err == nil || !strings.HasPrefix(err.Error(), "memcache: unexpected ") {
		return err
	}
	line := ""
	if i := strings.Index(err.Error(), `"`); i >= 0 {
		quoted := err.Error()[i:]
		if j := strings.LastIndex(quoted, `: "`); j >= 0 { // behind the quoted command
			quoted = quoted[j+2:]
		}
		line, _ = strconv.Unquote(quoted) // nothing where it is not quoted
	}
	return replyOf(line)
}

// replyOf returns the error of a line that was not expected.
func replyOf(line string) *ReplyError {
	reply := &ReplyError{Reply: strings.TrimSpace(line)}
	if reply.FailureKind() == unexpected {
		reply.Reply = "unexpected answer"
	}
	return reply
}

func isReply(err error) bool {
	var reply *ReplyError
	return errors.As(err, &reply)
}

// rejected gives a value that is too large for the server the error of that.
func rejected(err error, item *memcache.Item) error {
	var reply *ReplyError
	if errors.As(err, &reply) && strings.HasPrefix(reply.Reply, "SERVER_ERROR object too large") {
		return fmt.Errorf("%w: %d bytes: %w", tier.ErrTooLarge, len(item.Value), err)
	}
	return err
}

// ignoreMiss is for deletes: nothing there is as good.
func ignoreMiss(err error) error {
	if errors.Is(err, memcache.ErrCacheMiss) {
		return nil
	}
	return err
}
