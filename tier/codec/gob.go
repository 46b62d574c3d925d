package codec

import (
	"bytes"
	"encoding/gob"
	"reflect"

	"github.com/terracecache/terrace/tier"
)

// Gob returns the codec of encoding/gob: Go only, for values that [JSON] and
// [MsgPack] change, such as maps with struct keys. Each payload carries the
// description of its type, so it is larger and slower than both.
//
// Unexported fields are left out. Where V is or holds an interface, the types that
// it may hold must be given to [gob.Register]. Like the package below, it is not
// hardened against bytes that an enemy made for a V that refers to itself.
func Gob[V any]() tier.Codec[V] { return gobCodec[V]{} }

type gobCodec[V any] struct{}

func (gobCodec[V]) Name() string { return "gob" }

func (gobCodec[V]) Append(dst []byte, value V) (_ []byte, err error) {
	defer recoverTo(&err)
	w := writer{buf: dst}
	// By pointer, so that a V of interface type is sent as one.
	if err := gob.NewEncoder(&w).Encode(&value); err != nil {
		return nil, err
	}
	return w.buf, nil
}

func (gobCodec[V]) Decode(data []byte) (value V, err error) {
	defer recoverTo(&err)
	if err := checkGobLengths(data); err != nil {
		return value, err
	}
	r := bytes.NewReader(data)
	if err := gob.NewDecoder(r).Decode(&value); err != nil {
		return value, err
	}
	if r.Len() > 0 {
		return value, errTrailing
	}
	// A gob holds no difference between nil and empty. As nil never gets here, it
	// was empty.
	if v := reflect.ValueOf(&value).Elem(); v.Kind() == reflect.Slice && v.IsNil() {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	return value, nil
}

// checkGobLengths checks that data is a sequence of whole messages. The library
// would allocate 10 MB for a message that claims to be long.
func checkGobLengths(data []byte) error {
	for len(data) > 0 {
		// A length below 128 is one byte; another is its big-endian bytes behind their
		// negated count.
		size, n := 0, uint64(data[0])
		if n >= 0x80 {
			size, n = -int(int8(data[0])), 0
		}
		data = data[1:]
		if size > 8 || size > len(data) {
			return errShort
		}
		for _, b := range data[:size] {
			n = n<<8 | uint64(b)
		}
		data = data[size:]
		if n > uint64(len(data)) {
			return errShort
		}
		data = data[n:]
	}
	return nil
}
