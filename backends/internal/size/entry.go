package size

import (
	"unsafe"

	"github.com/terracecache/terrace/tier"
)

// extraSize is the object of an entry with tags or a validator.
const extraSize = 48

// OfEntry returns a function that estimates the bytes that a store takes for an entry
// under a key: those of the pair that they are in, with all that it leads to, and the
// store's own for each entry.
func OfEntry[K comparable, V any](own int64) func(K, *tier.Entry[V]) int64 {
	own += Object(unsafe.Sizeof(tier.Pair[K, V]{}), true)
	key, value := Beyond[K](), Beyond[V]()
	return func(k K, e *tier.Entry[V]) int64 {
		n := own + key(k) + value(e.Value())
		tags, validator := e.Tags(), e.Validator()
		if tags == nil && validator == "" {
			return n
		}
		n += extraSize + Object(unsafe.Sizeof("")*uintptr(cap(tags)), true) + Object(uintptr(len(validator)), false)
		for _, tag := range tags {
			n += Object(uintptr(len(tag)), false)
		}
		return n
	}
}
