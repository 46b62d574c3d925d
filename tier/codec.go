package tier

// Codec turns values into bytes and back. It is used concurrently.
//
// A Codec need not care for nil: [Encode] writes a nil pointer, map, slice or
// interface as a mark of its own.
type Codec[V any] interface {
	// Name names the format, for example "json". It is part of what readers compare
	// before they decode, so that two formats never meet.
	Name() string

	// Append appends the value's bytes to dst and returns the longer slice.
	Append(dst []byte, value V) ([]byte, error)

	// Decode returns the value that data holds. It may keep data, which nobody
	// changes. It must return an error for bytes that Append does not write, and
	// need not guard against its own panics: they count as unreadable bytes.
	Decode(data []byte) (V, error)
}
