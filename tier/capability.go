package tier

import (
	"context"
	"time"
)

// Capability is something that a store can do beyond what [Store] asks.
type Capability uint8

// The capabilities that a wrapper may have or lack, by what it wraps.
const (
	CanBatch   Capability = iota + 1 // Batcher, BytesBatcher
	CanSwap                          // Swapper, BytesSwapper
	CanClear                         // Clearer
	CanMeasure                       // Measurer
	CanResize                        // Resizer
	CanLease                         // Leaser
	CanTrack                         // Tracker, BytesTracker
)

// Partial is implemented by a wrapper whose method set promises more than the
// store that it wraps can do. Can tells what really works.
type Partial interface {
	Can(Capability) bool
}

// Local marks a store that answers from this process's memory: its methods do not
// block, fail only when closed, and are called without a time limit.
type Local interface {
	// Local reports whether the store is local.
	Local() bool
}

// Punctual marks a shared store whose calls all return soon after their context has
// ended, as those of Redis and memcached here do. A call of any other costs a goroutine,
// which is left behind when the tier's time is over.
type Punctual interface {
	// Punctual reports whether all calls do.
	Punctual() bool
}

// Forgetful marks a shared store of which a Get or GetVersion that has returned before its
// context's end keeps nothing of that context, as those of Redis and memcached here, which
// make a round trip for many reads in a context of its own. The contexts of such reads are
// used again, which saves a fifth of what a read allocates. A wrapper that embeds such a
// store says the same, unless it has a Forgetful of its own: it needs one that reports false
// if its reads leave their context to something that goes on, such as a second read beside
// the first.
type Forgetful interface {
	// Forgetful reports whether all such reads keep nothing.
	Forgetful() bool
}

// EndsByEntry marks a store that lets go of an entry by the entry's own end, or by no
// time at all. It is then told no ttl but the tier's own TTL, mostly [Forever], which
// saves a look at the clock for each write. Any other store is told the life that is
// left.
type EndsByEntry interface {
	// EndsByEntry reports whether the store goes by the entries' own ends.
	EndsByEntry() bool
}

// Validator is implemented by a store that can be composed wrongly. A cache checks
// it before it uses the store.
type Validator interface {
	// Validate returns what is wrong with the composition, or nil.
	Validate() error
}

// Batcher is a store that serves many keys in one go: one round trip, or one for
// each server that holds some of the keys.
type Batcher[K comparable, V any] interface {
	// GetMany returns a slice as long as keys; its i-th element is the entry under
	// the i-th key, or nil. Keys may repeat. A non-nil error tells that some could
	// not be read; those that could are in the slice all the same. Unreadable
	// entries are nil and no error.
	GetMany(ctx context.Context, keys []K) ([]*Entry[V], error)

	// SetMany keeps the i-th entry under the i-th key for the i-th ttl, as Set
	// does. Where a key repeats, its last entry counts. The error joins those of
	// the keys that failed.
	SetMany(ctx context.Context, keys []K, entries []*Entry[V], ttls []time.Duration) error

	// DeleteMany removes what is under the keys.
	DeleteMany(ctx context.Context, keys []K) error
}

// BytesBatcher is the [Batcher] of byte stores, with the same rules.
type BytesBatcher interface {
	// GetMany returns a slice as long as keys; nil where there is nothing.
	GetMany(ctx context.Context, keys []string) ([][]byte, error)
	// SetMany keeps the i-th value under the i-th key for the i-th ttl.
	SetMany(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error
	// DeleteMany removes what is under the keys.
	DeleteMany(ctx context.Context, keys []string) error
}

// Version identifies what a [Swapper] held under a key at one time: an entry, a
// tombstone, unreadable bytes, or nothing (the zero Version). Versions of one key
// are equal exactly when nothing was written under it in between.
type Version struct {
	head [HeadSize]byte
	size uint8 // how much of it there is
}

func versionOf(value []byte) (v Version) {
	v.size = uint8(copy(v.head[:], value))
	return v
}

// bytes returns the head.
func (v *Version) bytes() []byte { return v.head[:v.size] }

// Time returns when what the version stands for began: the load of an entry, or the
// writing of a tombstone; false for nothing and for bytes that are neither. Across
// processes it is as exact as their wall clocks agree.
func (v Version) Time() (Instant, bool) { return headTime(v.bytes(), readClocks()) }

// Swapper is a shared store that can write on condition. It is what keeps an
// answer that was loaded before somebody's Delete or Set, in whatever process,
// from being stored after it.
type Swapper[K comparable, V any] interface {
	// GetVersion is Get with the version of what was found, also where that was a
	// tombstone, unreadable or nothing.
	GetVersion(ctx context.Context, key K) (*Entry[V], Version, error)

	// SetIf is Set on the condition that the key still holds the given version. It
	// reports whether that was so; else nothing is changed. With a ttl of zero or less
	// the key holds nothing afterwards.
	SetIf(ctx context.Context, key K, entry *Entry[V], ttl time.Duration, version Version) (bool, error)

	// Bury is Delete that leaves a tombstone for the time of hold: reads find
	// nothing, and a SetIf with a version from before fails.
	Bury(ctx context.Context, key K, hold time.Duration) error

	// BuryIf is Bury on the condition that the key still holds the given version, and
	// reports whether that was so; else nothing is changed.
	BuryIf(ctx context.Context, key K, hold time.Duration, version Version) (bool, error)
}

// Leased reports whether the version is the mark of a [Leaser]: somebody loads the key.
func (v Version) Leased() bool { return headLeased(v.bytes()) }

// Leaser is a [Swapper] that can say that somebody loads a key. Where the key holds no
// entry the mark of that stands under the key itself. It is a tombstone: reads find
// nothing, a Set or Delete of anybody takes its place, and a SetIf with its version
// stores only if nobody did. Where the key holds an entry, which is not to be lost, the
// mark stands beside it.
type Leaser[K comparable] interface {
	// Lease puts a mark under the key on the condition that it still holds the given
	// version, and reports whether that was so. It stays for the time of hold at most.
	Lease(ctx context.Context, key K, hold time.Duration, version Version) (mark Version, won bool, err error)

	// Renew is Lease in the place of one's own mark. The new mark's Time is that of the
	// old one: what is loaded under it is no newer.
	Renew(ctx context.Context, key K, hold time.Duration, mark Version) (next Version, won bool, err error)

	// Release leaves a tombstone for the time of hold in the place of the mark, if it is
	// still there.
	Release(ctx context.Context, key K, hold time.Duration, mark Version) error

	// LeaseBeside puts a mark beside the key in the place of the given one, which is zero
	// for none, and reports whether that was there. It stays for the time of life at
	// most.
	LeaseBeside(ctx context.Context, key K, life time.Duration, mark Version) (next Version, won bool, err error)

	// ReleaseBeside removes the mark beside the key, if it is still there.
	ReleaseBeside(ctx context.Context, key K, mark Version) error
}

// HeadSize is how many of a value's first bytes tell its version.
const HeadSize = 16

// BytesSwapper is a byte store that can write on condition, in one atomic step on
// its server.
type BytesSwapper interface {
	// SetIf keeps value under key for ttl if the first [HeadSize] bytes there (all,
	// where there are fewer) equal head, and reports whether that was so. An empty
	// head means that the key holds nothing or an empty value.
	SetIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (bool, error)
}

// Clearer is a store that can remove all it holds for this cache, and nothing that
// belongs to others.
type Clearer interface {
	// Clear removes the store's own entries. Entries set while it runs may go too.
	Clear(ctx context.Context) error
}

// Measurer is a store that can tell how full it is.
type Measurer interface {
	// Usage returns the present figures. It is cheap enough to be called each
	// second.
	Usage() Usage
}

// Evicting is a store that chooses itself what has to make room.
type Evicting interface {
	// Eviction names the algorithm: lru, 2q, arc, sieve, tinylfu, w-tinylfu, or one of
	// the store's own.
	Eviction() string
}

// Resizer is a store whose capacity can be changed while it works. It is a capability of
// the store's composition as much as of its type: see [ErrNotResizable].
type Resizer interface {
	// Resize sets the most that the store holds, in the unit that it was made with
	// (entries, or cost), at least 1. What is held stays as far as there is room; with
	// less room the store evicts as it always does, at the latest with the next writes.
	// Reads and writes go on meanwhile. An error that is an ErrNotResizable tells that
	// this store keeps its capacity for life; nothing is changed with any error.
	Resize(capacity int64) error
}

// Usage tells how full a store is. A figure that a store does not know or that
// does not apply to it is -1.
type Usage struct {
	// Entries is how many entries the store holds, MaxEntries its capacity.
	Entries, MaxEntries int64
	// Cost is the summed cost of the entries, MaxCost its capacity, in the unit of
	// the store's cost function.
	Cost, MaxCost int64
	// Evictions counts the entries that had to go to make room.
	Evictions int64
	// Rejections counts the writes that the store chose not to keep, or lost.
	Rejections int64
}

// IsLocal reports whether the store answers from this process's memory.
func IsLocal[K comparable, V any](s Store[K, V]) bool {
	l, ok := s.(Local)
	return ok && l.Local()
}

// IsPunctual reports whether the store is [Punctual].
func IsPunctual[K comparable, V any](s Store[K, V]) bool {
	p, ok := s.(Punctual)
	return ok && p.Punctual()
}

// IsForgetful reports whether the store is [Forgetful].
func IsForgetful[K comparable, V any](s Store[K, V]) bool {
	f, ok := s.(Forgetful)
	return ok && f.Forgetful()
}

// DoesEndByEntry reports whether the store is [EndsByEntry].
func DoesEndByEntry[K comparable, V any](s Store[K, V]) bool {
	e, ok := s.(EndsByEntry)
	return ok && e.EndsByEntry()
}

// AsBatcher returns the store's batch methods if it has them.
func AsBatcher[K comparable, V any](s Store[K, V]) (Batcher[K, V], bool) {
	return as[Batcher[K, V]](s, CanBatch)
}

// AsSwapper returns the store's conditional writes if it has them.
func AsSwapper[K comparable, V any](s Store[K, V]) (Swapper[K, V], bool) {
	return as[Swapper[K, V]](s, CanSwap)
}

// AsLeaser returns the store's leases if it has them.
func AsLeaser[K comparable, V any](s Store[K, V]) (Leaser[K], bool) {
	return as[Leaser[K]](s, CanLease)
}

// AsClearer returns the Clear of a Store or Bytes if it has one.
func AsClearer(s any) (Clearer, bool) { return as[Clearer](s, CanClear) }

// AsMeasurer returns the Usage of a Store or Bytes if it has one.
func AsMeasurer(s any) (Measurer, bool) { return as[Measurer](s, CanMeasure) }

// AsResizer returns the Resize of a Store or Bytes if it has one.
func AsResizer(s any) (Resizer, bool) { return as[Resizer](s, CanResize) }

// EvictionOf returns the name of the store's eviction, or "" where it has none or tells
// none.
func EvictionOf(s any) string {
	if e, ok := s.(Evicting); ok {
		return e.Eviction()
	}
	return ""
}

// AsBytesBatcher returns the byte store's batch methods if it has them.
func AsBytesBatcher(b Bytes) (BytesBatcher, bool) { return as[BytesBatcher](b, CanBatch) }

// AsBytesSwapper returns the byte store's conditional writes if it has them.
func AsBytesSwapper(b Bytes) (BytesSwapper, bool) { return as[BytesSwapper](b, CanSwap) }

func as[T any](s any, c Capability) (T, bool) {
	t, ok := s.(T)
	if ok {
		if p, partial := s.(Partial); partial && !p.Can(c) {
			var none T
			return none, false
		}
	}
	return t, ok
}
