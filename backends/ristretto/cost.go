package ristretto

import (
	"reflect"
	"unsafe"

	"github.com/terracecache/terrace/tier"
)

// entryCost is what an entry takes beside its key and value, in bytes: the entry,
// our item and note, and Ristretto's map and policy tables at their usual load.
const entryCost = 300

// estimate is the Cost where none is given.
func estimate[K comparable, V any](key K, entry *tier.Entry[V]) int64 {
	value := entry.Value()
	return int64(entryCost) + size(&key) + size(&value)
}

// size returns the memory of *p, and of the text or bytes that it points to.
func size[T any](p *T) int64 {
	n := int64(unsafe.Sizeof(*p))
	switch v := reflect.ValueOf(p).Elem(); v.Kind() {
	case reflect.String:
		n += int64(v.Len())
	case reflect.Slice:
		n += int64(v.Cap()) * int64(v.Type().Elem().Size())
	}
	return n
}
