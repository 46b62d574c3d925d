package tier

import (
	"reflect"
	"slices"

	"github.com/terracecache/terrace/internal/seeding"
)

// Hasher hashes keys of type K with a seed of its own, to spread them over shards,
// and tells which keys a map can take. It is made by [NewHasher] and may be used
// concurrently.
type Hasher[K comparable] struct {
	hash    func(K) uint64
	dynamic bool // a K can hold an interface, and that what cannot be compared
	partial bool // a K can hold what does not equal itself, as NaN
}

// NewHasher returns a Hasher.
func NewHasher[K comparable]() Hasher[K] {
	t := reflect.TypeFor[K]()
	h := Hasher[K]{
		hash:    replayHash[K](),
		dynamic: holds(t, reflect.Interface),
		partial: holds(t, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128, reflect.Interface),
	}
	if h.hash == nil {
		h.hash = hashOf[K]()
	}
	return h
}

// Hash returns the key's hash, which differs from process to process. The key must
// be comparable. It does not allocate.
func (h Hasher[K]) Hash(key K) uint64 { return h.hash(key) }

// replayHash returns the hash of a replay in the lab, or nil.
func replayHash[K comparable]() func(K) uint64 {
	seed, given := seeding.Seed()
	if !given {
		return nil
	}
	hash, _ := any(func(key uint64) uint64 { return mix(mix(key) ^ seed) }).(func(K) uint64)
	return hash
}

// mix spreads keys over all 64 bits. Source: the finalizer of SplitMix64; Steele, Lea,
// Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Comparable reports whether the key can be compared and hashed without a panic.
func (h Hasher[K]) Comparable(key K) bool { return !h.dynamic || isComparable(key) }

// Storable reports whether a map finds the key again: it can be compared, and is
// equal to itself.
func (h Hasher[K]) Storable(key K) bool { return !h.partial || h.isStorable(key) }

func (h Hasher[K]) isStorable(key K) bool {
	return h.Comparable(key) && key == key // NaN is not
}

// holds reports whether a value of the type is of one of the kinds, or has such a part.
func holds(t reflect.Type, kinds ...reflect.Kind) bool {
	switch t.Kind() {
	case reflect.Array:
		return holds(t.Elem(), kinds...)
	case reflect.Struct:
		for i := range t.NumField() {
			if holds(t.Field(i).Type, kinds...) {
				return true
			}
		}
	}
	return slices.Contains(kinds, t.Kind())
}

// isComparable is a function of its own because its parameter escapes.
//
//go:noinline
func isComparable[K comparable](key K) bool { return reflect.ValueOf(&key).Elem().Comparable() }
