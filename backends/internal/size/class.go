package size

import "sync"

const (
	// largest is the largest object that Go allocates in a size class.
	largest = 32 << 10
	// page is what larger objects are rounded up to.
	page = 8 << 10
	// headed is the size above which an object with pointers has a header of its own.
	headed = 512
	header = 8
)

// classes has for each multiple of 8 the size of the class that such an object is
// allocated in. It asks the runtime, as the classes differ between versions of Go.
var classes = sync.OnceValue(func() *[largest/8 + 1]uint16 {
	all := new([largest/8 + 1]uint16)
	next := 1
	for next <= largest {
		class := cap(append([]byte(nil), make([]byte, next)...))
		for ; next <= class && next <= largest; next += 8 - (next-1)%8 {
			all[(next+7)/8] = uint16(class - 1) // 32 KiB less one fits
		}
		next = class + 1
	}
	return all
})

// Object returns the bytes that an object of n bytes takes in the heap.
func Object(n uintptr, pointers bool) int64 {
	if pointers && n > headed {
		n += header
	}
	switch {
	case n == 0:
		return 0
	case n > largest:
		return int64((n + page - 1) / page * page)
	default:
		return int64(classes()[(n+7)/8]) + 1
	}
}
