package redis

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ReplyError is an error that Redis answered. It is a [tier.Failure] whose kind is the
// reply's first word: OOM, READONLY, LOADING, MISCONF, NOAUTH, MOVED, CLUSTERDOWN, or ERR.
type ReplyError struct{ err error }

// quoted is what comes before the arguments where Redis quotes those of a command that it
// does not know or allow: keys and values, or a password.
const quoted = ", with args beginning with"

// Error returns the reply, up to where it quotes the command's arguments.
func (e *ReplyError) Error() string {
	text, _, _ := strings.Cut(e.err.Error(), quoted)
	return text
}

// Unwrap returns the client's error.
func (e *ReplyError) Unwrap() error { return e.err }

// FailureKind implements [tier.Failure].
func (e *ReplyError) FailureKind() string {
	var reply redis.Error
	text := e.err.Error()
	if errors.As(e.err, &reply) {
		text = reply.Error() // without what it is wrapped in
	}
	word, _, _ := strings.Cut(text, " ")
	if word == "" || len(word) > 20 || strings.ContainsFunc(word, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		return "ERR"
	}
	return word
}

// Outage implements [tier.Failure]: whether the server serves nobody, or not us.
func (e *ReplyError) Outage() bool {
	switch e.FailureKind() {
	case "LOADING", "CLUSTERDOWN", "MASTERDOWN", "NOAUTH", "WRONGPASS":
		return true
	default:
		return strings.Contains(e.err.Error(), "max number of clients reached")
	}
}

// asReply gives an error that is the server's answer its type.
func asReply(err error) error {
	if !isReply(err) {
		return err
	}
	return &ReplyError{err}
}
