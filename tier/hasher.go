package tier

import (
	"hash/maphash"
	"reflect"
)

// Hasher hashes keys of type K with a seed of its own, to spread them over shards,
// and tells which keys a map can take. It is made by [NewHasher] and may be used
// concurrently.
type Hasher[K comparable] struct {
	seed    maphash.Seed
	dynamic bool // a K can hold an interface, and that what cannot be compared
}

// NewHasher returns a Hasher.
func NewHasher[K comparable]() Hasher[K] {
	return Hasher[K]{seed: maphash.MakeSeed(), dynamic: holdsInterface(reflect.TypeFor[K]())}
}

// Hash returns the key's hash, which differs from process to process. The key must
// be comparable. It does not allocate.
func (h Hasher[K]) Hash(key K) uint64 { return maphash.Comparable(h.seed, key) }

// Comparable reports whether the key can be compared and hashed without a panic.
func (h Hasher[K]) Comparable(key K) bool { return !h.dynamic || isComparable(key) }

// Storable reports whether a map finds the key again: it can be compared, and is
// equal to itself.
func (h Hasher[K]) Storable(key K) bool {
	return h.Comparable(key) && key == key // NaN is not
}

func holdsInterface(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Array:
		return holdsInterface(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsInterface(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// isComparable is a function of its own because its parameter escapes.
//
//go:noinline
func isComparable[K comparable](key K) bool { return reflect.ValueOf(&key).Elem().Comparable() }
