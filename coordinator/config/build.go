package config

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/tier"
)

// Code is what a document cannot hold of a cache. All of it is optional.
type Code[K comparable, V any] struct {
	// Load asks the origin, or LoadEntry does; see [coordinator.Options].
	Load      coordinator.Loader[K, V]
	LoadEntry coordinator.EntryLoader[K, V]

	// Key turns keys into text for shared tiers; see [tier.EncodeOptions].
	Key func(K) string

	// ParseKey undoes Key, which a bus of the kind tracking needs; see
	// [tier.EncodeOptions].
	ParseKey func(text string) (K, error)

	// Schema names the meaning of the values in shared tiers; see [tier.EncodeOptions].
	Schema string

	// Cost returns what an entry counts as, in bytes, in tiers whose capacity is memory
	// and that have no "cost" of their own. Nil: an estimate.
	Cost func(key K, entry *tier.Entry[V]) int64

	// Logger gets what happens in the background; see [coordinator.Options].
	Logger *slog.Logger
}

// Build makes the cache of that name. It fails with [Faults] where the document does
// not fit the types, and opens no connection: a server that is down is met by the first
// call.
func Build[K comparable, V any](doc *Document, name string, code Code[K, V]) (*coordinator.Cache[K, V], error) {
	c, err := doc.cache(name)
	if err != nil {
		return nil, err
	}
	b := &builder[K, V]{
		decoder: decoder{registry: doc.registry},
		code:    code,
	}
	path := joinPath("caches", name)
	strategy, err := c.Refresh.strategy(doc.registry)
	if err != nil {
		b.broken(c.Refresh.at, "policy", path+".refresh", err.Error())
	}
	var tiers []tier.Tier[K, V]
	for i := range c.Tiers {
		t := &c.Tiers[i]
		store := b.store(t, t.path(path, i))
		if store == nil {
			continue
		}
		tiers = append(tiers, tier.Tier[K, V]{
			Name:    string(t.Name),
			Store:   store,
			TTL:     t.TTL.Duration,
			Timeout: t.Timeout.Duration,
			Breaker: tier.Breaker{Failures: int(t.Breaker.Failures.n), Probe: t.Breaker.Probe.Duration},
		})
	}
	bus, err := c.Bus.open(c)
	if err != nil {
		b.broken(c.at, "bus", path, err.Error())
	}
	if len(b.faults) > 0 {
		b.faults.sort()
		return nil, errors.Join(b.faults, closeAll(tiers), closeBus(bus))
	}
	cache, err := coordinator.New(coordinator.Options[K, V]{
		Name:       name,
		Tiers:      tiers,
		Lifetime:   c.Lifetime.lifetime(),
		Refresh:    strategy,
		Load:       code.Load,
		LoadEntry:  code.LoadEntry,
		Limits:     c.Limits.limits(),
		Lease:      coordinator.Lease{Life: c.Lease.Life.Duration},
		Bus:        bus,
		BusOptions: c.Bus.options(),
		Track:      c.Bus.tracks(),
		Backoff:    c.Backoff.backoff(),
		Logger:     code.Logger,
	})
	if err != nil {
		return nil, errors.Join(err, closeAll(tiers), closeBus(bus))
	}
	return cache, nil
}

// cache returns the part of the document that is about one cache.
func (d *Document) cache(name string) (*cacheSpec, error) {
	c := d.spec.Caches[name]
	if c == nil {
		f := Fault{File: d.file, Path: "caches", Problem: fmt.Sprintf("there is no cache %q: there is %s", name, oneOf(d.Names()))}
		f.Meant = nearest(name, d.Names(), nil)
		return nil, Faults{f}
	}
	return c, nil
}

func closeAll[K comparable, V any](tiers []tier.Tier[K, V]) error {
	var errs []error
	for _, t := range tiers {
		errs = append(errs, t.Store.Close())
	}
	return errors.Join(errs...)
}

func closeBus(bus tier.Bus) error {
	if bus == nil {
		return nil
	}
	return bus.Close()
}

// builder makes stores for one type of keys and values.
type builder[K comparable, V any] struct {
	decoder
	code Code[K, V]
}

// store makes a tier's store, or notes why it cannot.
func (b *builder[K, V]) store(t *tierSpec, path string) (s tier.Store[K, V]) {
	field := "backend"
	var err error
	switch b.registry.kindOf(string(t.Backend)) {
	case "memory":
		field = "eviction"
		s, err = b.memory(t)
	case "bytes":
		if s = b.shared(t, path); s == nil {
			return nil
		}
	default:
		s, err = b.registered(t)
	}
	if err == nil && isNil(s) {
		err = errors.New("made no store")
	}
	if err == nil {
		if v, ok := s.(tier.Validator); ok {
			err = v.Validate()
		}
	}
	if err != nil {
		if t.at.child(field) == nil {
			field = "backend"
		}
		b.broken(t.at, field, path, err.Error())
		if !isNil(s) {
			_ = s.Close()
		}
		return nil
	}
	return s
}

// registered makes a store of a registered backend that keeps entries itself.
func (b *builder[K, V]) registered(t *tierSpec) (tier.Store[K, V], error) {
	b.registry.mu.RLock()
	f, ok := b.registry.stores[typedName{string(t.Backend), reflect.TypeFor[K](), reflect.TypeFor[V]()}].(StoreFunc[K, V])
	b.registry.mu.RUnlock()
	if !ok {
		return nil, notFor[K, V]("backend", string(t.Backend))
	}
	return safely(string(t.Backend), func() (tier.Store[K, V], error) { return f(Params{t.Options}) })
}

// safely calls what others have registered.
func safely[T any](name string, f func() (T, error)) (made T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s panicked", name) // with what may be secret
		}
	}()
	return f()
}

func notFor[K comparable, V any](what, name string) error {
	return fmt.Errorf("the %s %s is registered for other types than keys of %v and values of %v", what, name, reflect.TypeFor[K](), reflect.TypeFor[V]())
}

func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || (r.Kind() == reflect.Pointer || r.Kind() == reflect.Interface) && r.IsNil()
}
