// Package size estimates how many bytes of the heap a value holds, by following what it
// leads to. The work for one value is bounded: of long slices and large maps a sample is
// looked at, and the rest is taken to be alike; a chain of pointers counts as far as it
// was followed.
//
// What cannot be known: whether what a value points to is held by others as well, or lies
// outside the heap, as constants do; and what is behind an unsafe.Pointer, an
// atomic.Pointer or in a func, which counts nothing. What is referred to twice within a
// value counts once, except strings. A [time.Location] and a [reflect.Type] are the
// process's and count nothing. A struct with a field of package sync or sync/atomic counts
// without what it leads to, as that may change at any time.
package size

import (
	"reflect"
	"sync"
	"unsafe"
)

// Of returns a function that estimates the bytes that a value of T holds: its own, and
// those of all that it leads to. What there is to know of the type is found out once. The
// function may be called concurrently; nobody may change the value meanwhile.
func Of[T any]() func(T) int64 {
	self := int64(reflect.TypeFor[T]().Size())
	beyond := Beyond[T]()
	return func(v T) int64 { return self + beyond(v) }
}

// Beyond is [Of] without the value's own bytes, for a value that lies in another object.
func Beyond[T any]() func(T) int64 {
	t := reflect.TypeFor[T]()
	switch {
	case !leads(t):
		return func(T) int64 { return 0 }
	// The following need no copy of the value on the heap.
	case t.Kind() == reflect.String:
		return func(v T) int64 { return Object(uintptr(len(*(*string)(unsafe.Pointer(&v)))), false) }
	case t.Kind() == reflect.Slice && !leads(t.Elem()):
		size, pointers := t.Elem().Size(), pointers(t.Elem())
		return func(v T) int64 { return Object(uintptr(cap(*(*[]struct{})(unsafe.Pointer(&v))))*size, pointers) }
	case t.Kind() == reflect.Pointer:
		elem := shapeOf(t.Elem())
		return func(v T) int64 { return walk(elem.object, *(*unsafe.Pointer)(unsafe.Pointer(&v))) }
	default:
		shape := shapeOf(t)
		return func(v T) int64 { return walk(shape.beyond, unsafe.Pointer(&v)) }
	}
}

var visits = sync.Pool{New: func() any { return new(visit) }}

// walk applies a function of a shape to one value.
func walk(f func(unsafe.Pointer, *visit) int64, p unsafe.Pointer) int64 {
	v := visits.Get().(*visit)
	v.begin()
	n := f(p, v)
	v.end()
	visits.Put(v)
	return n
}
