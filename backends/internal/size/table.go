package size

import (
	"math/bits"
	"reflect"
	"unsafe"
)

// table is what is known of a map type: Go's maps since 1.24 have groups of eight slots,
// in tables of at most 1,024 slots that are filled to seven eighths at most.
type table struct {
	typ       reflect.Type
	key, elem *shape
	group     uintptr // bytes
	pointers  bool
	apart     int64 // bytes for each entry that is too large for its slot
}

const (
	perGroup   = 8
	perTable   = 1024
	mapHead    = 48
	tableHead  = 32
	largestKey = 128 // or element, in a slot
)

func tableOf(t reflect.Type) *table {
	m := &table{typ: t, key: shapeOf(t.Key()), elem: shapeOf(t.Elem())}
	m.pointers = m.key.pointers || m.elem.pointers
	slot, align := uintptr(0), uintptr(1)
	for _, s := range []*shape{m.key, m.elem} {
		size, a := s.size, uintptr(s.typ.Align())
		if size > largestKey {
			m.apart += Object(size, s.pointers)
			m.pointers = true
			size, a = unsafe.Sizeof(size), unsafe.Alignof(size)
		}
		slot = (slot+a-1)/a*a + size
		align = max(align, a)
	}
	m.group = 8 + perGroup*((slot+align-1)/align*align)
	return m
}

// bytes returns what the map at p takes, and what its keys and elements lead to.
func (m *table) bytes(p unsafe.Pointer, v *visit) int64 {
	if !v.enter(*(*unsafe.Pointer)(p)) {
		return 0
	}
	defer v.leave()
	held := reflect.NewAt(m.typ, p).Elem()
	n := held.Len()
	return m.own(n) + m.beyond(held, n, v)
}

// own returns what a map takes that has grown to n entries.
func (m *table) own(n int) int64 {
	switch {
	case n == 0:
		return mapHead
	case n <= perGroup:
		return mapHead + Object(m.group, m.pointers) + m.apart*int64(n)
	}
	slots := uintptr(1) << bits.Len(uint(n*8+6)/7-1)
	tables := max(1, slots/perTable)
	each := Object(slots/tables/perGroup*m.group, m.pointers) + tableHead
	return mapHead + Object(tables*8, true) + int64(tables)*each + m.apart*int64(n)
}

func (m *table) beyond(held reflect.Value, n int, v *visit) int64 {
	if n == 0 || !m.key.leads && !m.elem.leads {
		return 0
	}
	key, elem := reflect.New(m.key.typ), reflect.New(m.elem.typ)
	all := held.MapRange()
	return v.estimate(n, func(int) (bytes int64) {
		if !all.Next() {
			return 0
		}
		if m.key.leads {
			key.Elem().SetIterKey(all)
			bytes += m.key.beyond(key.UnsafePointer(), v)
		}
		if m.elem.leads {
			elem.Elem().SetIterValue(all)
			bytes += m.elem.beyond(elem.UnsafePointer(), v)
		}
		return bytes
	})
}
