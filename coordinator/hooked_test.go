package coordinator_test

import (
	"context"
	"sync"
	"time"

	"github.com/terracecache/terrace/tier"
)

// hooked runs a function of the test's before each call of a store; an error of it
// is the call's answer. It counts as remote, and shows the capabilities of the store
// that it wraps only as far as a type that embeds it does.
type hooked[V any] struct {
	store tier.Store[string, V]

	mu     sync.Mutex
	before func(ctx context.Context, op, key string) error
	ops    []string
}

func hook[V any](s tier.Store[string, V], before func(ctx context.Context, op, key string) error) *hooked[V] {
	return &hooked[V]{store: s, before: before}
}

func (h *hooked[V]) call(ctx context.Context, op, key string) error {
	h.mu.Lock()
	h.ops = append(h.ops, op+" "+key)
	before := h.before
	h.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(ctx, op, key)
}

func (h *hooked[V]) Get(ctx context.Context, key string) (*tier.Entry[V], error) {
	if err := h.call(ctx, "get", key); err != nil {
		return nil, err
	}
	return h.store.Get(ctx, key)
}

func (h *hooked[V]) Set(ctx context.Context, key string, e *tier.Entry[V], ttl time.Duration) error {
	if err := h.call(ctx, "set", key); err != nil {
		return err
	}
	return h.store.Set(ctx, key, e, ttl)
}

func (h *hooked[V]) Delete(ctx context.Context, key string) error {
	if err := h.call(ctx, "delete", key); err != nil {
		return err
	}
	return h.store.Delete(ctx, key)
}

func (h *hooked[V]) Close() error { return h.store.Close() }

// hookedSwapper is a hooked store that writes on condition.
type hookedSwapper[V any] struct {
	*hooked[V]
	swap tier.Swapper[string, V]
}

func hookSwapper[V any](s interface {
	tier.Store[string, V]
	tier.Swapper[string, V]
}, before func(ctx context.Context, op, key string) error) *hookedSwapper[V] {
	return &hookedSwapper[V]{hooked: hook[V](s, before), swap: s}
}

func (h *hookedSwapper[V]) GetVersion(ctx context.Context, key string) (*tier.Entry[V], tier.Version, error) {
	if err := h.call(ctx, "get", key); err != nil {
		return nil, tier.Version{}, err
	}
	return h.swap.GetVersion(ctx, key)
}

func (h *hookedSwapper[V]) SetIf(ctx context.Context, key string, e *tier.Entry[V], ttl time.Duration, v tier.Version) (bool, error) {
	if err := h.call(ctx, "setif", key); err != nil {
		return false, err
	}
	return h.swap.SetIf(ctx, key, e, ttl, v)
}

func (h *hookedSwapper[V]) Bury(ctx context.Context, key string, hold time.Duration) error {
	if err := h.call(ctx, "bury", key); err != nil {
		return err
	}
	return h.swap.Bury(ctx, key, hold)
}

func (h *hookedSwapper[V]) BuryIf(ctx context.Context, key string, hold time.Duration, v tier.Version) (bool, error) {
	if err := h.call(ctx, "bury", key); err != nil {
		return false, err
	}
	return h.swap.BuryIf(ctx, key, hold, v)
}
