package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/terracecache/terrace/tier"
)

// MsgPack returns the codec of github.com/vmihailenco/msgpack: smaller and faster
// than [JSON], readable by many languages, exact for integers and any bytes.
//
// Unexported fields are left out, and in a V of interface type a number comes back
// as the smallest type that holds it, a struct as a map.
func MsgPack[V any]() tier.Codec[V] {
	t := reflect.TypeFor[*V]()
	_, decoder := t.MethodByName("DecodeMsgpack")
	_, unmarshaler := t.MethodByName("UnmarshalMsgpack")
	return msgpackCodec[V]{null: decoder || unmarshaler || holdsNil[V]()}
}

type msgpackCodec[V any] struct {
	null bool // nil is a value of V
}

func (msgpackCodec[V]) Name() string { return "msgpack" }

func (msgpackCodec[V]) Append(dst []byte, value V) (_ []byte, err error) {
	defer recoverTo(&err)
	w := writer{buf: dst}
	enc := msgpack.GetEncoder()
	enc.Reset(&w)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	msgpack.PutEncoder(enc)
	return w.buf, nil
}

func (c msgpackCodec[V]) Decode(data []byte) (value V, err error) {
	defer recoverTo(&err)
	// The library allocates what a length claims and recurses as deep as the data
	// does: five bytes could take 64 GB, and a stack that overflows is no panic that
	// can be recovered. So it sees well-formed data only.
	rest, err := skipMsgPack(data, maxDepth)
	switch {
	case err != nil:
		return value, err
	case len(rest) > 0:
		return value, errTrailing
	case !c.null && data[0] == 0xc0:
		return value, errors.New("nil is no value of this type")
	}
	dec := msgpack.GetDecoder()
	dec.Reset(bytes.NewReader(data))
	err = dec.Decode(&value)
	msgpack.PutDecoder(dec)
	return value, err
}

// maxDepth is how deep arrays and maps may nest, as in encoding/json.
const maxDepth = 10_000

var (
	errTrailing = errors.New("bytes follow the value")
	errShort    = errors.New("the value ends early")
	errDepth    = errors.New("nested too deep")
	errInvalid  = errors.New("byte that starts no value")
)

// skipMsgPack returns what follows the first value, which it checks for lengths
// that fit in data. See github.com/msgpack/msgpack/blob/master/spec.md.
func skipMsgPack(data []byte, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, errDepth
	}
	if len(data) == 0 {
		return nil, errShort
	}
	code, data := data[0], data[1:]
	switch {
	case code <= 0x7f || code >= 0xe0: // fixint
		return data, nil
	case code <= 0x8f:
		return skipItems(data, 2*uint64(code&0x0f), depth)
	case code <= 0x9f:
		return skipItems(data, uint64(code&0x0f), depth)
	case code <= 0xbf: // fixstr
		return skipBytes(data, uint64(code&0x1f))
	}
	switch code {
	case 0xc0, 0xc2, 0xc3: // nil, false, true
		return data, nil
	case 0xc4, 0xc5, 0xc6: // bin
		return skipSized(data, 1<<(code-0xc4), 0)
	case 0xc7, 0xc8, 0xc9: // ext, with a type byte
		return skipSized(data, 1<<(code-0xc7), 1)
	case 0xca: // float 32
		return skipBytes(data, 4)
	case 0xcb: // float 64
		return skipBytes(data, 8)
	case 0xcc, 0xcd, 0xce, 0xcf: // uint
		return skipBytes(data, 1<<(code-0xcc))
	case 0xd0, 0xd1, 0xd2, 0xd3: // int
		return skipBytes(data, 1<<(code-0xd0))
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8: // fixext
		return skipBytes(data, 1+1<<(code-0xd4))
	case 0xd9, 0xda, 0xdb: // str
		return skipSized(data, 1<<(code-0xd9), 0)
	case 0xdc, 0xdd: // array
		n, data, err := readSize(data, 2<<(code-0xdc))
		if err != nil {
			return nil, err
		}
		return skipItems(data, n, depth)
	case 0xde, 0xdf: // map
		n, data, err := readSize(data, 2<<(code-0xde))
		if err != nil {
			return nil, err
		}
		return skipItems(data, 2*n, depth)
	}
	return nil, errInvalid
}

func skipItems(data []byte, n uint64, depth int) (_ []byte, err error) {
	if n > uint64(len(data)) { // each takes a byte at least
		return nil, errShort
	}
	for ; n > 0 && err == nil; n-- {
		data, err = skipMsgPack(data, depth-1)
	}
	return data, err
}

// skipSized skips a length of so many bytes, and then that length and extra.
func skipSized(data []byte, sizeBytes int, extra uint64) ([]byte, error) {
	n, data, err := readSize(data, sizeBytes)
	if err != nil {
		return nil, err
	}
	return skipBytes(data, n+extra)
}

func skipBytes(data []byte, n uint64) ([]byte, error) {
	if n > uint64(len(data)) {
		return nil, errShort
	}
	return data[n:], nil
}

func readSize(data []byte, sizeBytes int) (uint64, []byte, error) {
	if len(data) < sizeBytes {
		return 0, nil, errShort
	}
	var padded [8]byte
	copy(padded[8-sizeBytes:], data)
	return binary.BigEndian.Uint64(padded[:]), data[sizeBytes:], nil
}
