package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/terracecache/terrace/tier"
)

// JSON returns the codec of encoding/json: readable anywhere, and the choice where
// other languages or people read the cache too.
//
// Unexported fields are left out, text that is not UTF-8 changes, and in a V of
// interface type every number comes back as a float64. Where that matters take
// [MsgPack] or [Gob].
func JSON[V any]() tier.Codec[V] {
	_, custom := reflect.TypeFor[*V]().MethodByName("UnmarshalJSON")
	return jsonCodec[V]{null: custom || holdsNil[V]()}
}

type jsonCodec[V any] struct {
	null bool // null is a value of V
}

func (jsonCodec[V]) Name() string { return "json" }

func (jsonCodec[V]) Append(dst []byte, value V) (_ []byte, err error) {
	defer recoverTo(&err)
	b, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return append(dst, b...), nil
}

func (c jsonCodec[V]) Decode(data []byte) (value V, err error) {
	defer recoverTo(&err)
	// Unmarshal takes null for any type and leaves the zero value.
	if !c.null && bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return value, errors.New("null is no value of this type")
	}
	err = json.Unmarshal(data, &value)
	return value, err
}
