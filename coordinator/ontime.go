package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/terracecache/terrace/tier"
)

// onTime gives a store that may not heed contexts a time limit all the same (S1): its
// calls run in goroutines that are left behind when their context ends. These are
// bounded in number; when all are taken a call fails at its own time limit without
// having been made.
//
// A write that was left behind may take effect later. Until it has returned no other
// write of its key is made, so that it overwrites nothing newer. Those fail, and are
// tried again like all that fail (W4).
type onTime[K comparable, V any] struct {
	store tier.Store[K, V]
	swap  tier.Swapper[K, V]
	lease tier.Leaser[K]
	clear tier.Clearer
	calls gate
	late  func(error) // is told of calls that fail or panic after they were left

	mu   sync.Mutex
	left map[K]int // writes under way that were left
}

// onTimeCalls is how many calls of such a store are under way at a time, those included
// that were left.
const onTimeCalls = 64

// onTimeGrace is what a call has, once its time is over, to return by itself.
const onTimeGrace = 2 * time.Millisecond

var (
	errLateWrite = errors.New("an earlier write of the key has not returned yet")
	errStuck     = fmt.Errorf("%d calls of the store have not returned", onTimeCalls)
)

func newOnTime[K comparable, V any](store tier.Store[K, V]) *onTime[K, V] {
	s := &onTime[K, V]{store: store, calls: gate{max: onTimeCalls}, left: make(map[K]int), late: func(error) {}}
	s.swap, _ = tier.AsSwapper(store)
	s.lease, _ = tier.AsLeaser(store)
	s.clear, _ = tier.AsClearer(store)
	return s
}

// returned is what a call of a store came to.
type returned[T any] struct {
	value    T
	err      error
	panicked any
}

// callOnTime makes a call within the context. The key is that which the call writes, or
// nil.
func callOnTime[K comparable, V, T any](ctx context.Context, s *onTime[K, V], written *K, call func() (T, error)) (T, error) {
	var none T
	if written != nil && s.isLeft(*written) {
		return none, errLateWrite
	}
	if err := s.calls.enter(ctx); err != nil {
		return none, fmt.Errorf("%w: %w", errStuck, err)
	}
	done := make(chan returned[T], 1) // nobody may be there to receive
	go func() {
		o := returned[T]{err: ErrGoexit}
		defer func() {
			o.panicked = recover()
			s.calls.leave()
			done <- o
		}()
		o.value, o.err = call()
	}()
	var o returned[T]
	select {
	case o = <-done:
	case <-ctx.Done():
		grace := time.NewTimer(onTimeGrace)
		defer grace.Stop()
		select {
		case o = <-done:
		case <-grace.C:
			leave(s, written, done)
			return none, ctx.Err()
		}
	}
	if o.panicked != nil {
		panic(o.panicked) // for who would have met it without us
	}
	return o.value, o.err
}

// leave stays behind with a call.
func leave[K comparable, V, T any](s *onTime[K, V], written *K, done <-chan returned[T]) {
	if written != nil {
		s.mu.Lock()
		s.left[*written]++
		s.mu.Unlock()
	}
	go func() {
		o := <-done
		if written != nil {
			s.mu.Lock()
			if s.left[*written]--; s.left[*written] == 0 {
				delete(s.left, *written)
			}
			s.mu.Unlock()
		}
		if o.panicked != nil {
			o.err = &PanicError{Value: o.panicked}
		}
		if o.err != nil {
			s.late(o.err)
		}
	}()
}

func (s *onTime[K, V]) isLeft(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left[key] > 0
}

// do is callOnTime of a write that answers nothing.
func (s *onTime[K, V]) do(ctx context.Context, written *K, call func() error) error {
	_, err := callOnTime(ctx, s, written, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// Can implements [tier.Partial].
func (s *onTime[K, V]) Can(c tier.Capability) bool {
	switch c {
	case tier.CanSwap:
		return s.swap != nil
	case tier.CanLease:
		return s.lease != nil
	case tier.CanClear:
		return s.clear != nil
	default:
		return false
	}
}

// found is what a read with a version came to.
type found[V any] struct {
	entry   *tier.Entry[V]
	version tier.Version
}

// Get implements [tier.Store].
func (s *onTime[K, V]) Get(ctx context.Context, key K) (*tier.Entry[V], error) {
	return callOnTime(ctx, s, nil, func() (*tier.Entry[V], error) { return s.store.Get(ctx, key) })
}

// Set implements [tier.Store].
func (s *onTime[K, V]) Set(ctx context.Context, key K, e *tier.Entry[V], ttl time.Duration) error {
	return s.do(ctx, &key, func() error { return s.store.Set(ctx, key, e, ttl) })
}

// Delete implements [tier.Store].
func (s *onTime[K, V]) Delete(ctx context.Context, key K) error {
	return s.do(ctx, &key, func() error { return s.store.Delete(ctx, key) })
}

// Close implements [tier.Store]. It is not bounded: Close of the cache bounds it.
func (s *onTime[K, V]) Close() error { return s.store.Close() }

// Clear implements [tier.Clearer].
func (s *onTime[K, V]) Clear(ctx context.Context) error {
	return s.do(ctx, nil, func() error { return s.clear.Clear(ctx) })
}

// GetVersion implements [tier.Swapper].
func (s *onTime[K, V]) GetVersion(ctx context.Context, key K) (*tier.Entry[V], tier.Version, error) {
	f, err := callOnTime(ctx, s, nil, func() (f found[V], err error) {
		f.entry, f.version, err = s.swap.GetVersion(ctx, key)
		return f, err
	})
	return f.entry, f.version, err
}

// SetIf implements [tier.Swapper].
func (s *onTime[K, V]) SetIf(ctx context.Context, key K, e *tier.Entry[V], ttl time.Duration, v tier.Version) (bool, error) {
	return callOnTime(ctx, s, &key, func() (bool, error) { return s.swap.SetIf(ctx, key, e, ttl, v) })
}

// Bury implements [tier.Swapper].
func (s *onTime[K, V]) Bury(ctx context.Context, key K, hold time.Duration) error {
	return s.do(ctx, &key, func() error { return s.swap.Bury(ctx, key, hold) })
}

// BuryIf implements [tier.Swapper].
func (s *onTime[K, V]) BuryIf(ctx context.Context, key K, hold time.Duration, v tier.Version) (bool, error) {
	return callOnTime(ctx, s, &key, func() (bool, error) { return s.swap.BuryIf(ctx, key, hold, v) })
}

// marked is what a try to put a lease's mark came to.
type marked struct {
	mark tier.Version
	won  bool
}

// Lease implements [tier.Leaser].
func (s *onTime[K, V]) Lease(ctx context.Context, key K, hold time.Duration, v tier.Version) (tier.Version, bool, error) {
	m, err := callOnTime(ctx, s, &key, func() (m marked, err error) {
		m.mark, m.won, err = s.lease.Lease(ctx, key, hold, v)
		return m, err
	})
	return m.mark, m.won, err
}

// Renew implements [tier.Leaser].
func (s *onTime[K, V]) Renew(ctx context.Context, key K, hold time.Duration, mark tier.Version) (tier.Version, bool, error) {
	m, err := callOnTime(ctx, s, &key, func() (m marked, err error) {
		m.mark, m.won, err = s.lease.Renew(ctx, key, hold, mark)
		return m, err
	})
	return m.mark, m.won, err
}

// Release implements [tier.Leaser].
func (s *onTime[K, V]) Release(ctx context.Context, key K, hold time.Duration, mark tier.Version) error {
	return s.do(ctx, &key, func() error { return s.lease.Release(ctx, key, hold, mark) })
}

// LeaseBeside implements [tier.Leaser].
func (s *onTime[K, V]) LeaseBeside(ctx context.Context, key K, life time.Duration, mark tier.Version) (tier.Version, bool, error) {
	m, err := callOnTime(ctx, s, &key, func() (m marked, err error) {
		m.mark, m.won, err = s.lease.LeaseBeside(ctx, key, life, mark)
		return m, err
	})
	return m.mark, m.won, err
}

// ReleaseBeside implements [tier.Leaser].
func (s *onTime[K, V]) ReleaseBeside(ctx context.Context, key K, mark tier.Version) error {
	return s.do(ctx, &key, func() error { return s.lease.ReleaseBeside(ctx, key, mark) })
}
