package tier

import "context"

// Tracker is a shared store that tells which of its keys change, whoever changes them:
// also programs that know nothing of it.
type Tracker[K comparable] interface {
	// Track tells the handler of the changes, until stop or the store's Close is called.
	// It does not wait for a connection: that there is one the handler is told. Both stop
	// and Close wait for the call of a handler that is under way, so no handler may call
	// them, and none is called after they return. An error says that the store can never
	// tell; after Close it is [ErrClosed].
	Track(h TrackHandler[K]) (stop func(), err error)

	// Wrote reports whether this store has tried to write the key not long ago, so that
	// a change that is told may be that. It waits for nothing, and false is certain as
	// far as it matters: who takes a write of this store for that of others loses time,
	// not truth. It remembers from the first Track on.
	Wrote(key K) bool

	// Writers tells of each key who has written what it holds now. With an error nothing
	// is known.
	Writers(ctx context.Context, keys []K) ([]Writer, error)
}

// Writer is who has written what a key holds.
type Writer uint8

// The writers that a [Tracker] knows.
const (
	Others   Writer = iota // or nobody: the key holds nothing; or this store, too long ago
	OwnEntry               // this store: an entry
	OwnMark                // this store: a tombstone, or the mark of a lease
)

// TrackHandler is told what changes in a [Tracker]: one call at a time, in order. While
// a call runs, changes are kept back up to a bound, and lost beyond it, with Lost and
// Connected.
type TrackHandler[K comparable] interface {
	// Connected says that changes which are made from now on are told. Those from before
	// may not have been. It is called once at first, and once after each Lost.
	Connected()

	// Changed says that the keys were written, deleted, or have expired: a read that
	// begins now finds what they hold since, or something later. Keys may repeat, and a
	// key may be told that has not changed. The slice is the handler's.
	Changed(keys []K)

	// ChangedAll says that any key may have changed.
	ChangedAll()

	// Lost says that changes are not told, or may not be, and why, until Connected is
	// called. Some may be told meanwhile, but none before the first Connected. The error
	// holds no credentials.
	Lost(why error)
}

// BytesTracker is a byte store of which [Encode] can make a [Tracker].
type BytesTracker interface {
	// Track is that of [Tracker].
	Track(h TrackHandler[string]) (stop func(), err error)

	// Heads returns the first [HeadSize] bytes under each of the keys, all where there
	// are fewer, and nil where there is nothing or what is no value of the store's. Keys
	// may repeat. With an error nothing is known.
	Heads(ctx context.Context, keys []string) ([][]byte, error)
}

// AsTracker returns the store's tracking if it has any.
func AsTracker[K comparable, V any](s Store[K, V]) (Tracker[K], bool) {
	return as[Tracker[K]](s, CanTrack)
}

// AsBytesTracker returns the byte store's tracking if it has any.
func AsBytesTracker(b Bytes) (BytesTracker, bool) { return as[BytesTracker](b, CanTrack) }
