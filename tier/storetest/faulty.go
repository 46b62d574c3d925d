package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Faulty is a [tier.Store] around another that misbehaves on command and records
// its calls. It can do what the other can.
type Faulty[K comparable, V any] struct {
	Faults
	store tier.Store[K, V]
}

// NewFaulty returns a Faulty without any fault.
func NewFaulty[K comparable, V any](store tier.Store[K, V]) *Faulty[K, V] {
	return &Faulty[K, V]{store: store}
}

// Can implements [tier.Partial].
func (f *Faulty[K, V]) Can(c tier.Capability) (ok bool) {
	switch c {
	case tier.CanBatch:
		_, ok = tier.AsBatcher(f.store)
	case tier.CanSwap:
		_, ok = tier.AsSwapper(f.store)
	case tier.CanClear:
		_, ok = tier.AsClearer(f.store)
	case tier.CanMeasure:
		_, ok = tier.AsMeasurer(f.store)
	case tier.CanTrack:
		_, ok = tier.AsTracker(f.store)
	}
	return ok
}

// Local implements [tier.Local].
func (f *Faulty[K, V]) Local() bool { return !f.isRemote() && tier.IsLocal(f.store) }

// Validate implements [tier.Validator].
func (f *Faulty[K, V]) Validate() error { return validate(f.store) }

// Get implements [tier.Store].
func (f *Faulty[K, V]) Get(ctx context.Context, key K) (entry *tier.Entry[V], err error) {
	err = f.do(ctx, Call{Get, []any{key}}, func() (err error) {
		entry, err = f.store.Get(ctx, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return entry, nil
}

// Set implements [tier.Store].
func (f *Faulty[K, V]) Set(ctx context.Context, key K, entry *tier.Entry[V], ttl time.Duration) error {
	return f.do(ctx, Call{Set, []any{key}}, func() error { return f.store.Set(ctx, key, entry, ttl) })
}

// Delete implements [tier.Store].
func (f *Faulty[K, V]) Delete(ctx context.Context, key K) error {
	return f.do(ctx, Call{Delete, []any{key}}, func() error { return f.store.Delete(ctx, key) })
}

// GetMany implements [tier.Batcher].
func (f *Faulty[K, V]) GetMany(ctx context.Context, keys []K) ([]*tier.Entry[V], error) {
	batch, ok := tier.AsBatcher(f.store)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	entries := make([]*tier.Entry[V], len(keys))
	err := f.do(ctx, Call{GetMany, anys(keys)}, func() (err error) {
		entries, err = batch.GetMany(ctx, keys)
		return err
	})
	return entries, err
}

// SetMany implements [tier.Batcher].
func (f *Faulty[K, V]) SetMany(ctx context.Context, keys []K, entries []*tier.Entry[V], ttls []time.Duration) error {
	batch, ok := tier.AsBatcher(f.store)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.do(ctx, Call{SetMany, anys(keys)}, func() error { return batch.SetMany(ctx, keys, entries, ttls) })
}

// DeleteMany implements [tier.Batcher].
func (f *Faulty[K, V]) DeleteMany(ctx context.Context, keys []K) error {
	batch, ok := tier.AsBatcher(f.store)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.do(ctx, Call{DeleteMany, anys(keys)}, func() error { return batch.DeleteMany(ctx, keys) })
}

// GetVersion implements [tier.Swapper].
func (f *Faulty[K, V]) GetVersion(ctx context.Context, key K) (entry *tier.Entry[V], version tier.Version, err error) {
	swap, ok := tier.AsSwapper(f.store)
	if !ok {
		return nil, tier.Version{}, errors.ErrUnsupported
	}
	err = f.do(ctx, Call{GetVersion, []any{key}}, func() (err error) {
		entry, version, err = swap.GetVersion(ctx, key)
		return err
	})
	if err != nil {
		return nil, version, err
	}
	return entry, version, nil
}

// SetIf implements [tier.Swapper].
func (f *Faulty[K, V]) SetIf(ctx context.Context, key K, entry *tier.Entry[V], ttl time.Duration, version tier.Version) (stored bool, err error) {
	swap, ok := tier.AsSwapper(f.store)
	if !ok {
		return false, errors.ErrUnsupported
	}
	err = f.do(ctx, Call{SetIf, []any{key}}, func() (err error) {
		stored, err = swap.SetIf(ctx, key, entry, ttl, version)
		return err
	})
	return stored && err == nil, err
}

// Bury implements [tier.Swapper].
func (f *Faulty[K, V]) Bury(ctx context.Context, key K, hold time.Duration) error {
	swap, ok := tier.AsSwapper(f.store)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.do(ctx, Call{Bury, []any{key}}, func() error { return swap.Bury(ctx, key, hold) })
}

// BuryIf implements [tier.Swapper].
func (f *Faulty[K, V]) BuryIf(ctx context.Context, key K, hold time.Duration, version tier.Version) (buried bool, err error) {
	swap, ok := tier.AsSwapper(f.store)
	if !ok {
		return false, errors.ErrUnsupported
	}
	err = f.do(ctx, Call{Bury, []any{key}}, func() (err error) {
		buried, err = swap.BuryIf(ctx, key, hold, version)
		return err
	})
	return buried && err == nil, err
}

// Track implements [tier.Tracker]. It fails as the other store does only.
func (f *Faulty[K, V]) Track(h tier.TrackHandler[K]) (stop func(), err error) {
	track, ok := tier.AsTracker(f.store)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return track.Track(h)
}

// Wrote implements [tier.Tracker].
func (f *Faulty[K, V]) Wrote(key K) bool {
	track, ok := tier.AsTracker(f.store)
	return ok && track.Wrote(key)
}

// Writers implements [tier.Tracker].
func (f *Faulty[K, V]) Writers(ctx context.Context, keys []K) (writers []tier.Writer, err error) {
	track, ok := tier.AsTracker(f.store)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	err = f.do(ctx, Call{Writers, anys(keys)}, func() (err error) {
		writers, err = track.Writers(ctx, keys)
		return err
	})
	return writers, err
}

// Clear implements [tier.Clearer].
func (f *Faulty[K, V]) Clear(ctx context.Context) error { return f.clear(ctx, f.store) }

// Usage implements [tier.Measurer].
func (f *Faulty[K, V]) Usage() tier.Usage { return usage(f.store) }

// Close implements [tier.Store].
func (f *Faulty[K, V]) Close() error {
	return f.do(context.Background(), Call{Op: Close}, f.store.Close)
}

// FaultyBytes is a [tier.Bytes] around another that misbehaves on command and
// records its calls. It can do what the other can.
type FaultyBytes struct {
	Faults
	bytes tier.Bytes
}

// NewFaultyBytes returns a FaultyBytes without any fault.
func NewFaultyBytes(b tier.Bytes) *FaultyBytes { return &FaultyBytes{bytes: b} }

// Can implements [tier.Partial].
func (f *FaultyBytes) Can(c tier.Capability) (ok bool) {
	switch c {
	case tier.CanBatch:
		_, ok = tier.AsBytesBatcher(f.bytes)
	case tier.CanSwap:
		_, ok = tier.AsBytesSwapper(f.bytes)
	case tier.CanClear:
		_, ok = tier.AsClearer(f.bytes)
	case tier.CanMeasure:
		_, ok = tier.AsMeasurer(f.bytes)
	case tier.CanTrack:
		_, ok = tier.AsBytesTracker(f.bytes)
	}
	return ok
}

// Local implements [tier.Local].
func (f *FaultyBytes) Local() bool {
	l, ok := f.bytes.(tier.Local)
	return ok && l.Local() && !f.isRemote()
}

// Validate implements [tier.Validator].
func (f *FaultyBytes) Validate() error { return validate(f.bytes) }

// Get implements [tier.Bytes].
func (f *FaultyBytes) Get(ctx context.Context, key string) (value []byte, err error) {
	err = f.do(ctx, Call{Get, []any{key}}, func() (err error) {
		value, err = f.bytes.Get(ctx, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}

// Set implements [tier.Bytes].
func (f *FaultyBytes) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return f.do(ctx, Call{Set, []any{key}}, func() error { return f.bytes.Set(ctx, key, value, ttl) })
}

// Delete implements [tier.Bytes].
func (f *FaultyBytes) Delete(ctx context.Context, key string) error {
	return f.do(ctx, Call{Delete, []any{key}}, func() error { return f.bytes.Delete(ctx, key) })
}

// GetMany implements [tier.BytesBatcher].
func (f *FaultyBytes) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	batch, ok := tier.AsBytesBatcher(f.bytes)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	values := make([][]byte, len(keys))
	err := f.do(ctx, Call{GetMany, anys(keys)}, func() (err error) {
		values, err = batch.GetMany(ctx, keys)
		return err
	})
	return values, err
}

// SetMany implements [tier.BytesBatcher].
func (f *FaultyBytes) SetMany(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error {
	batch, ok := tier.AsBytesBatcher(f.bytes)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.do(ctx, Call{SetMany, anys(keys)}, func() error { return batch.SetMany(ctx, keys, values, ttls) })
}

// DeleteMany implements [tier.BytesBatcher].
func (f *FaultyBytes) DeleteMany(ctx context.Context, keys []string) error {
	batch, ok := tier.AsBytesBatcher(f.bytes)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.do(ctx, Call{DeleteMany, anys(keys)}, func() error { return batch.DeleteMany(ctx, keys) })
}

// SetIf implements [tier.BytesSwapper].
func (f *FaultyBytes) SetIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (stored bool, err error) {
	swap, ok := tier.AsBytesSwapper(f.bytes)
	if !ok {
		return false, errors.ErrUnsupported
	}
	err = f.do(ctx, Call{SetIf, []any{key}}, func() (err error) {
		stored, err = swap.SetIf(ctx, key, value, ttl, head)
		return err
	})
	return stored && err == nil, err
}

// Track implements [tier.BytesTracker]. It fails as the other store does only.
func (f *FaultyBytes) Track(h tier.TrackHandler[string]) (stop func(), err error) {
	track, ok := tier.AsBytesTracker(f.bytes)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return track.Track(h)
}

// Heads implements [tier.BytesTracker].
func (f *FaultyBytes) Heads(ctx context.Context, keys []string) (heads [][]byte, err error) {
	track, ok := tier.AsBytesTracker(f.bytes)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	err = f.do(ctx, Call{Heads, anys(keys)}, func() (err error) {
		heads, err = track.Heads(ctx, keys)
		return err
	})
	return heads, err
}

// Clear implements [tier.Clearer].
func (f *FaultyBytes) Clear(ctx context.Context) error { return f.clear(ctx, f.bytes) }

// Usage implements [tier.Measurer].
func (f *FaultyBytes) Usage() tier.Usage { return usage(f.bytes) }

// Close implements [tier.Bytes].
func (f *FaultyBytes) Close() error {
	return f.do(context.Background(), Call{Op: Close}, f.bytes.Close)
}

func (f *Faults) clear(ctx context.Context, store any) error {
	c, ok := tier.AsClearer(store)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.do(ctx, Call{Op: Clear}, func() error { return c.Clear(ctx) })
}

func usage(store any) tier.Usage {
	if m, ok := tier.AsMeasurer(store); ok {
		return m.Usage()
	}
	return tier.Usage{Entries: -1, MaxEntries: -1, Cost: -1, MaxCost: -1, Evictions: -1, Rejections: -1}
}

func validate(store any) error {
	if v, ok := store.(tier.Validator); ok {
		return v.Validate()
	}
	return nil
}
