package codec

import "github.com/terracecache/terrace/tier"

// String returns the codec of strings that are stored as they are, whatever bytes
// they hold.
func String() tier.Codec[string] { return stringCodec{} }

type stringCodec struct{}

func (stringCodec) Name() string { return "string" }

func (stringCodec) Append(dst []byte, value string) ([]byte, error) {
	return append(dst, value...), nil
}

func (stringCodec) Decode(data []byte) (string, error) { return string(data), nil }
