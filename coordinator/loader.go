package coordinator

import (
	"context"
	"time"

	"github.com/terracecache/terrace/tier"
)

// Loader asks the origin for the value of a key. Its context is detached from the
// callers who wait (it has the values of the one who came first) and ends at
// Limits.LoadTimeout or when the cache is closed. An error that is [ErrAbsent] says
// that there is no value, which is cached; any other error is handed to all who wait
// and is not cached. A value beside an error is ignored.
type Loader[K comparable, V any] func(ctx context.Context, key K) (V, error)

// EntryLoader is a [Loader] that sees what is being replaced and can say more of
// its answer. The previous entry is the newest usable one that was found, or nil.
type EntryLoader[K comparable, V any] func(ctx context.Context, key K, previous *tier.Entry[V]) (Loaded[V], error)

// Loaded is an [EntryLoader]'s answer.
type Loaded[V any] struct {
	// Value is the value.
	Value V
	// TTL takes the place of the lifetime's TTL, or of its Absent beside an
	// [ErrAbsent], for this entry. Zero: it does not. Below zero the answer is over
	// already, as with NoStore.
	TTL time.Duration
	// Tags name groups to invalidate the entry by.
	Tags []string
	// Validator is the origin's mark of this version (an ETag), which the next load
	// finds in the previous entry.
	Validator string
	// NotModified says that the previous entry's value is still right: it gets a new
	// life, and its tags and validator where none are given here.
	NotModified bool
	// NoStore hands the value to those who wait and keeps it nowhere.
	NoStore bool
}

// loading is a loader of either form.
type loading[K comparable, V any] struct {
	plain Loader[K, V]
	entry EntryLoader[K, V]
}

func (l loading[K, V]) none() bool { return l.plain == nil && l.entry == nil }

func (l loading[K, V]) call(ctx context.Context, key K, previous *tier.Entry[V]) (Loaded[V], error) {
	if l.entry != nil {
		return l.entry(ctx, key, previous)
	}
	v, err := l.plain(ctx, key)
	return Loaded[V]{Value: v}, err
}
