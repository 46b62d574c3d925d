package size

import (
	"reflect"
	"sync"
	"time"
	"unsafe"
)

// shape is what is known of a type.
type shape struct {
	typ      reflect.Type
	size     uintptr
	leads    bool // a value may lead to bytes outside itself
	pointers bool // the garbage collector looks into it

	once sync.Once
	walk func(p unsafe.Pointer, v *visit) int64
}

var shapes sync.Map // of reflect.Type to *shape

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s, _ := shapes.LoadOrStore(t, &shape{typ: t, size: t.Size(), leads: leads(t), pointers: pointers(t)})
	return s.(*shape)
}

// beyond returns the bytes that the value at p leads to.
func (s *shape) beyond(p unsafe.Pointer, v *visit) int64 {
	if !s.leads {
		return 0
	}
	s.once.Do(func() { s.walk = walkerOf(s.typ) }) // late, as a type may lead to itself
	return s.walk(p, v)
}

// object returns the bytes of the value at p, an object of its own, and of what it leads
// to.
func (s *shape) object(p unsafe.Pointer, v *visit) int64 {
	if !v.enter(p) {
		return 0
	}
	defer v.leave()
	return Object(s.size, s.pointers) + s.beyond(p, v)
}

// leads reports whether a value of the type may lead to bytes outside itself.
func leads(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Interface, reflect.Chan:
		return true
	case reflect.Pointer:
		return !shared(t.Elem())
	default:
		return !guards(t) && parts(t, leads)
	}
}

// guards reports whether the type is a struct with a lock or an atomic. What else is in it
// may change while the value is held, and to look at a map then ends the process.
func guards(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	if t.PkgPath() == "sync" || t.PkgPath() == "sync/atomic" {
		return true
	}
	for i := range t.NumField() {
		if p := t.Field(i).Type.PkgPath(); p == "sync" || p == "sync/atomic" {
			return true
		}
	}
	return false
}

// pointers reports whether the garbage collector looks into values of the type.
func pointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Interface, reflect.Chan,
		reflect.Pointer, reflect.Func, reflect.UnsafePointer:
		return true
	default:
		return parts(t, pointers)
	}
}

// parts reports whether something is so for a part of an array or struct.
func parts(t reflect.Type, so func(reflect.Type) bool) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && so(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if so(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

var (
	location    = reflect.TypeFor[time.Location]()
	runtimeType = reflect.TypeOf(reflect.TypeFor[int]()).Elem()
)

// shared reports whether objects of the type are the process's rather than a value's.
func shared(t reflect.Type) bool { return t == location || t == runtimeType }

// walkerOf returns the walk of a shape that leads somewhere.
func walkerOf(t reflect.Type) func(unsafe.Pointer, *visit) int64 {
	switch t.Kind() {
	case reflect.String:
		return func(p unsafe.Pointer, _ *visit) int64 { return Object(uintptr(len(*(*string)(p))), false) }
	case reflect.Slice:
		elem := shapeOf(t.Elem())
		return func(p unsafe.Pointer, v *visit) int64 { return slice(*(*[]struct{})(p), elem, v) }
	case reflect.Pointer:
		elem := shapeOf(t.Elem())
		return func(p unsafe.Pointer, v *visit) int64 { return elem.object(*(*unsafe.Pointer)(p), v) }
	case reflect.Interface:
		return func(p unsafe.Pointer, v *visit) int64 { return boxed(t, p, v) }
	case reflect.Map:
		m := tableOf(t)
		return func(p unsafe.Pointer, v *visit) int64 { return m.bytes(p, v) }
	case reflect.Chan:
		return func(p unsafe.Pointer, v *visit) int64 { return channel(t, p, v) }
	case reflect.Array:
		elem := shapeOf(t.Elem())
		return func(p unsafe.Pointer, v *visit) int64 { return elements(p, t.Len(), elem, v) }
	default:
		return structWalker(t)
	}
}

func structWalker(t reflect.Type) func(unsafe.Pointer, *visit) int64 {
	type field struct {
		offset uintptr
		shape  *shape
	}
	var fields []field
	for i := range t.NumField() {
		if f := t.Field(i); leads(f.Type) {
			fields = append(fields, field{f.Offset, shapeOf(f.Type)})
		}
	}
	return func(p unsafe.Pointer, v *visit) (n int64) {
		for i := range fields {
			n += fields[i].shape.beyond(unsafe.Add(p, fields[i].offset), v)
		}
		return n
	}
}

// slice takes one of any type in the guise of one of structs without a size.
func slice(s []struct{}, elem *shape, v *visit) int64 {
	data := unsafe.Pointer(unsafe.SliceData(s))
	if cap(s) == 0 || elem.size == 0 || !v.enter(data) {
		return 0
	}
	defer v.leave()
	n := Object(uintptr(cap(s))*elem.size, elem.pointers)
	if elem.leads {
		n += elements(data, len(s), elem, v)
	}
	return n
}

func elements(p unsafe.Pointer, n int, elem *shape, v *visit) int64 {
	return v.estimate(n, func(i int) int64 { return elem.beyond(unsafe.Add(p, uintptr(i)*elem.size), v) })
}

// boxed returns the bytes that the interface at p leads to.
func boxed(t reflect.Type, p unsafe.Pointer, v *visit) int64 {
	value := reflect.NewAt(t, p).Elem().Elem()
	if !value.IsValid() {
		return 0
	}
	inside := shapeOf(value.Type())
	data := (*[2]unsafe.Pointer)(p)[1]
	switch value.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return inside.beyond(unsafe.Pointer(&data), v) // the second word is the value
	}
	if inside.size == unsafe.Sizeof(data) && inside.pointers {
		// The word may be the value or point to it, which versions of Go decide differently.
		copied := reflect.New(inside.typ)
		copied.Elem().Set(value)
		return inside.beyond(copied.UnsafePointer(), v)
	}
	return inside.object(data, v)
}

func channel(t reflect.Type, p unsafe.Pointer, v *visit) int64 {
	const head = 96
	if !v.enter(*(*unsafe.Pointer)(p)) {
		return 0
	}
	defer v.leave()
	capacity := reflect.NewAt(t, p).Elem().Cap()
	return Object(head+uintptr(capacity)*t.Elem().Size(), true)
}
