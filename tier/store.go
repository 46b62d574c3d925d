package tier

import (
	"context"
	"time"
)

// Store keeps entries under keys. All methods may be called concurrently, also
// while and after Close runs; after Close they return [ErrClosed]. None panics.
//
// A store may drop any entry at any time (that is what makes it a cache), but it
// never gives back an entry that is older than the last write to its key that
// returned: after a Set it has that entry or nothing, after a Delete nothing.
type Store[K comparable, V any] interface {
	// Get returns the entry under key, or nil when there is none. Whoever calls it
	// checks the entry's UsableUntil: a store may give back an entry whose life is
	// over. An error that is [ErrUnreadable] counts as a miss.
	Get(ctx context.Context, key K) (*Entry[V], error)

	// Set keeps the entry for at most ttl from now: an entry given back later has
	// a UsableUntil that is no later than that (see [Entry.Capped]). [Forever] means
	// no bound beside the entry's own end, after which a store may let go of it; with
	// a ttl of zero or less the entry is not kept.
	// When Set does not keep the entry, for whatever reason, and whether or not it
	// returns an error, nothing older is left under the key, as far as the store can
	// be reached.
	Set(ctx context.Context, key K, entry *Entry[V], ttl time.Duration) error

	// Delete removes what is under key. Deleting nothing is no error.
	Delete(ctx context.Context, key K) error

	// Close releases what the store holds. A second Close returns nil.
	Close() error
}

// Bytes keeps bytes under string keys, most often in another process. [Encode]
// makes a [Store] of it. All methods may be called concurrently, also while and
// after Close runs; after Close they return [ErrClosed]. None panics. Each returns
// soon after its context ends.
//
// Any key works, whatever bytes it has, from the empty one to 1 KiB at least, and
// two different keys never meet.
type Bytes interface {
	// Get returns the bytes under key. A nil slice means that there are none; an
	// empty value is an empty slice that is not nil. The slice is the caller's.
	Get(ctx context.Context, key string) ([]byte, error)

	// Set keeps the bytes for ttl, which a store with a coarser unit rounds up.
	// [Forever] means no expiry; with a ttl of zero or less nothing is kept. When
	// Set does not keep the value nothing older is left under the key, as far as
	// the store can be reached; a value that the store can never take is answered
	// with [ErrTooLarge]. The slice is not kept after Set returns.
	Set(ctx context.Context, key string, value []byte, ttl time.Duration) error

	// Delete removes what is under key. Deleting nothing is no error.
	Delete(ctx context.Context, key string) error

	// Close releases what the store holds. A second Close returns nil.
	Close() error
}

// Tier is a store with its place in a cache.
type Tier[K comparable, V any] struct {
	// Name is how statistics, logs and errors call the tier. It must not be empty,
	// and no two tiers of a cache share one.
	Name string
	// Store keeps the tier's entries. The cache closes it.
	Store Store[K, V]
	// TTL is the longest time that this tier keeps an entry. Zero means no bound
	// beside the entry's own life.
	TTL time.Duration
	// Timeout bounds each call of a store that is not [Local]. Zero means
	// [DefaultTimeout].
	Timeout time.Duration
	// Breaker says when calls of a store that is not [Local] are skipped for a while.
	Breaker Breaker
}

// Breaker keeps calls away from a store that does not answer, so that they cost
// nothing instead of its Timeout. Zero has the defaults.
type Breaker struct {
	// Failures is after how many failures in a row the store is left alone. Only those
	// count that are an outage: see [IsOutage]. Zero: 2.
	Failures int
	// Probe is how long it is left alone before one call is let through, whose success
	// ends that. Zero: one second.
	Probe time.Duration
	// Off lets every call through.
	Off bool
}

// DefaultTimeout bounds a call of a remote store whose tier names no bound.
const DefaultTimeout = 500 * time.Millisecond
