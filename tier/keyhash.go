package tier

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"unsafe"
)

// hashOf returns a hash for keys of type K, with seeds of its own: who does not know them
// cannot choose keys that meet.
//
// Keys that are texts of up to 32 bytes or integers of 64 bits, as nearly all are, are hashed by
// two or three multiplications in one call, where maphash takes four calls; a hit then takes a
// seventh less. Source: wyhash, by Wang Yi, in the form that Go's runtime has for processors without
// AES (runtime/hash64.go).
func hashOf[K comparable]() func(K) uint64 {
	t := reflect.TypeFor[K]()
	switch t.Kind() {
	case reflect.String:
		hash := hashOfTexts()
		return *(*func(K) uint64)(unsafe.Pointer(&hash)) // a K is a string by whatever name
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Uintptr:
		if t.Size() == 8 {
			hash := hashOfNumbers()
			return *(*func(K) uint64)(unsafe.Pointer(&hash)) // eight bytes, which are passed alike
		}
	}
	seed := maphash.MakeSeed()
	return func(key K) uint64 { return maphash.Comparable(seed, key) }
}

// lengths tells keys of different lengths apart.
const lengths = 0x1d8e4e27c47d124f

func hashOfNumbers() func(uint64) uint64 {
	seed, secret := rand.Uint64(), rand.Uint64()
	return func(n uint64) uint64 { return fold(lengths^8, fold(n^secret, n^seed)) }
}

// longText is from which length on maphash is faster.
const longText = 33

func hashOfTexts() func(string) uint64 {
	seed, secret, long := rand.Uint64(), rand.Uint64(), maphash.MakeSeed()
	return func(text string) uint64 {
		n := len(text)
		b := unsafe.Slice(unsafe.StringData(text), n)
		var first, last uint64
		with := seed
		switch {
		case n >= longText:
			return maphash.String(long, text)
		case n > 16:
			with = fold(binary.LittleEndian.Uint64(b)^secret, binary.LittleEndian.Uint64(b[8:])^seed)
			first, last = binary.LittleEndian.Uint64(b[n-16:]), binary.LittleEndian.Uint64(b[n-8:])
		case n >= 8:
			first, last = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
		case n >= 4:
			first, last = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
		case n > 0:
			first = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
		}
		return fold(lengths^uint64(n), fold(first^secret, last^with))
	}
}

// fold multiplies, and joins the halves of the product.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
