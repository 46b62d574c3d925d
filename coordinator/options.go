package coordinator

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// Options describe a cache.
type Options[K comparable, V any] struct {
	// Name is how logs, errors and statistics call the cache. Empty: "cache".
	Name string

	// Tiers are the stores to chain, the fastest first. At least one. The cache owns
	// them from New on: Close closes them, and nobody else writes to them.
	Tiers []tier.Tier[K, V]

	// Lifetime says how long entries live. Its TTL must be set.
	Lifetime policy.Lifetime

	// Refresh decides when an entry is loaded again. Nil: [policy.Fixed].
	Refresh policy.Strategy

	// Load asks the origin. Nil (with LoadEntry nil too): a miss is answered with
	// [ErrMiss].
	Load Loader[K, V]

	// LoadEntry is used instead of Load, not beside it, where a loader wants to see
	// the previous entry or to say more of its answer.
	LoadEntry EntryLoader[K, V]

	// Limits bound what the cache does at once.
	Limits Limits

	// Bus tells the caches of other processes what this one writes, and this one what they
	// write, so that the tiers in memory hold nothing older. It stays the caller's: one
	// serves many caches, is closed after them, and not by them. Keys must have a text of
	// their own: strings, numbers, and arrays and structs of such. Nil: none.
	Bus tier.Bus
	// BusOptions say how it is used.
	BusOptions BusOptions

	// Track has the first shared tier tell what changes in it, whoever changes it, so that
	// the tiers in memory hold nothing older: also programs that know nothing of this
	// cache. It is another kind of bus, and can be used beside the first. The tier's store
	// must be a [tier.Tracker], as Redis is. BusOptions's Clamp and Queue apply.
	Track bool

	// Backoff spaces tries after failures: loads of a key that has a stale value to
	// serve meanwhile, and writes to a tier that failed.
	Backoff policy.Backoff

	// Lease has one process at a time load a key. It needs a shared tier that can write
	// on condition (Redis and memcached can). Zero: each process loads for itself.
	Lease Lease

	// Logger gets what happens in the background, at most one line a second for each
	// kind. Nil: [slog.Default]. Keys and values are never logged.
	Logger *slog.Logger
}

// Limits bound what a cache does at once. Zero means the default.
type Limits struct {
	// Flights bounds the flights that run at once: loads, and reads of remote tiers.
	// A load that has timed out counts until its loader really returns. Callers beyond
	// it get a stale value or wait for a turn. Default 65,536.
	Flights int
	// Loads bounds the loaders that run at once, over all keys; one that has timed out
	// counts until it returns. One more waits for a turn, as long as a load may take,
	// or is left undone where there is a stale value to serve. Zero: no bound.
	Loads int
	// Background bounds the refreshes that run at once; one beyond it is left to a
	// later read. Default 64.
	Background int
	// LoadTimeout is how long a load may take. Default 10 s.
	LoadTimeout time.Duration
	// Recovery bounds, for each tier, the writes that failed and wait to be tried
	// again, the newest of each key. Default 4,096.
	Recovery int
}

func (l Limits) withDefaults() Limits {
	if l.Flights == 0 {
		l.Flights = 1 << 16
	}
	if l.Background == 0 {
		l.Background = 64
	}
	if l.LoadTimeout == 0 {
		l.LoadTimeout = 10 * time.Second
	}
	if l.Recovery == 0 {
		l.Recovery = 4096
	}
	return l
}

func (l Limits) validate() error {
	var errs []error
	check := func(ok bool, name string, value any) {
		if !ok {
			errs = append(errs, fmt.Errorf("limit %s %v: want zero (for the default) or more", name, value))
		}
	}
	check(l.Flights >= 0, "Flights", l.Flights)
	check(l.Loads >= 0, "Loads", l.Loads)
	check(l.Background >= 0, "Background", l.Background)
	check(l.LoadTimeout >= 0, "LoadTimeout", l.LoadTimeout)
	check(l.Recovery >= 0, "Recovery", l.Recovery)
	return errors.Join(errs...)
}

// validate returns all that is wrong, not only the first.
func (o *Options[K, V]) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if len(o.Tiers) == 0 {
		bad("no tiers: a cache needs at least one")
	}
	names := make(map[string]int)
	for i, t := range o.Tiers {
		if t.Name == "" {
			bad("tier %d has no name", i+1)
		} else if j, twice := names[t.Name]; twice {
			bad("tiers %d and %d are both called %q", j+1, i+1, t.Name)
		} else {
			names[t.Name] = i
		}
		if t.TTL < 0 {
			bad("tier %q: TTL %v: want zero (for no bound) or more", t.Name, t.TTL)
		}
		if t.Timeout < 0 {
			bad("tier %q: Timeout %v: want zero (for %v) or more", t.Name, t.Timeout, tier.DefaultTimeout)
		}
		if t.Breaker.Failures < 0 || t.Breaker.Probe < 0 {
			bad("tier %q: Breaker %+v: want zero (for the default) or more", t.Name, t.Breaker)
		}
		if isNil(t.Store) {
			bad("tier %q has no store", t.Name)
		} else if v, ok := t.Store.(tier.Validator); ok {
			if err := v.Validate(); err != nil {
				bad("tier %q: %w", t.Name, err)
			}
		}
	}
	if o.Load != nil && o.LoadEntry != nil {
		bad("both Load and LoadEntry are set: a cache has one loader")
	}
	if !isNil(o.Bus) {
		if _, err := tier.NewKeyCoder[K](); err != nil {
			bad("Bus: %w: the keys cannot be told to other processes", tier.ErrBadKey)
		}
	}
	for _, err := range []error{o.BusOptions.validate(), o.validateTrack(), o.Lifetime.Validate(), validatePolicy(o.Refresh, o.Lifetime), o.Limits.validate(), o.Backoff.Validate(), o.Lease.validate()} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("terrace: cache %q: %w", o.name(), errors.Join(errs...))
}

func validatePolicy(s policy.Strategy, l policy.Lifetime) error {
	if v, ok := s.(policy.Validator); ok {
		return v.Validate(l)
	}
	return nil
}

func (o *Options[K, V]) name() string {
	if o.Name == "" {
		return "cache"
	}
	return o.Name
}

// isNil reports whether an interface holds nothing, or a nil pointer.
func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}
