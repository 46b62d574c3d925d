package memcached

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/internal/gate"
	"github.com/terracecache/terrace/tier"
)

// call runs op within the context.
func call[T any](ctx context.Context, s *Store, doing string, op func() (T, error)) (T, error) {
	if s.invalid != nil {
		var none T
		return none, s.invalid
	}
	value, err := gate.Do(ctx, s.gate, op)
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, tier.ErrClosed):
		return value, tier.ErrClosed
	default:
		return value, fmt.Errorf("terrace/memcached: %s: %w", doing, err)
	}
}

// do is call for what answers nothing.
func do(ctx context.Context, s *Store, doing string, op func() error) error {
	_, err := call(ctx, s, doing, func() (struct{}, error) { return struct{}{}, op() })
	return err
}

// redo runs op, and once again where it met a connection that the server had closed.
// It is for what may be done twice.
func (s *Store) redo(ctx context.Context, op func() error) error {
	err := op()
	if s.reconnect(ctx, err) {
		err = op()
	}
	return err
}

// reconnect reports whether the error is that of a connection that the server had
// closed and it is worth to try again, on a new one.
func (s *Store) reconnect(ctx context.Context, err error) bool {
	dead := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
	if !dead || ctx.Err() != nil {
		return false
	}
	// A server that has closed one connection (it restarted, or looks for idle ones)
	// has most likely closed the others. Despite its name Close drops the idle
	// connections and no more.
	_ = s.client.Close()
	return true
}

// isTooLarge tells the answer to a value that exceeds the server's limit.
// gomemcache has no error of its own for it.
func isTooLarge(err error) bool {
	return err != nil && strings.Contains(err.Error(), "SERVER_ERROR object too large for cache")
}

// isReply reports whether the server answered: everything that gomemcache finds in
// the answer is text of its own, while failures to get one are those of the network.
func isReply(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "memcache: unexpected response line")
}

// ignoreMiss is for deletes: nothing there is as good.
func ignoreMiss(err error) error {
	if errors.Is(err, memcache.ErrCacheMiss) {
		return nil
	}
	return err
}
