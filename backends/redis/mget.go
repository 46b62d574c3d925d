package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/internal/failure"
	"github.com/terracecache/terrace/backends/internal/gather"
)

// many tells whether keys may be read by MGET, which costs client and server about half
// of what as many GETs do. On a Cluster it would fail for keys of several slots.
type many struct {
	single  bool
	refused atomic.Bool // the server knows no MGET, or this user may not use it
}

func (m *many) may() bool { return m.single && !m.refused.Load() }

var errShortAnswer = errors.New("MGET answered for other keys than were asked for")

// getMany reads the keys by one MGET, to which what is no string is nothing. It reports
// whether it met a connection that the server had closed, and false for ok if GETs are
// to be tried.
func (s *Store) getMany(ctx context.Context, keys []string, answers []gather.Answer[[]byte]) (dead, ok bool) {
	args := make([]any, 1, 1+len(keys))
	args[0] = "mget"
	for i := range keys {
		args = append(args, &keys[i]) // go-redis takes pointers, which need no memory here
	}
	cmd := redis.NewSliceCmd(ctx, args...)
	err := s.client.Process(ctx, cmd)
	values := cmd.Val()
	switch {
	case isRefused(err):
		s.gatherers.many.refused.Store(true)
		return false, false
	case err == nil && len(values) != len(keys):
		err = fmt.Errorf("%w: %d of %d", errShortAnswer, len(values), len(keys))
	}
	for i := range answers {
		if err != nil {
			answers[i].Err = err
		} else if value, ok := values[i].(string); ok {
			// The string is nobody else's.
			answers[i].Value = unsafe.Slice(unsafe.StringData(value), len(value))
			if value == "" {
				answers[i].Value = []byte{}
			}
		}
	}
	return failure.IsDead(err), true
}

// isRefused reports whether the server may answer a GET where it does not this command.
func isRefused(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") ||
		redis.HasErrorPrefix(err, "ERR") && strings.Contains(err.Error(), "unknown command")
}
