package codec

import "github.com/terracecache/terrace/tier"

// Raw returns the codec of bytes that are stored as they are. A decoded value
// shares memory with what the store returned, so nobody may change it. It is never
// nil.
func Raw() tier.Codec[[]byte] { return rawCodec{} }

type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Append(dst []byte, value []byte) ([]byte, error) {
	return append(dst, value...), nil
}

func (rawCodec) Decode(data []byte) ([]byte, error) {
	if data == nil {
		return []byte{}, nil
	}
	return data[:len(data):len(data)], nil // an append to the value copies it
}
