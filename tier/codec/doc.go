// Package codec holds ready-made [tier.Codec]s: [JSON], [MsgPack] and [Gob] for any
// type, [Raw] for bytes and [String] for strings; and what [tier.EncodeWith] can do with
// their bytes: [Compression] and [Encryption].
//
// All codecs are safe for concurrent use, refuse bytes that they do not write
// (also where something follows a good value), and turn a panic of the library
// below them into an error. What they allocate for a payload is in proportion to
// its length, whatever length a field inside it claims.
package codec

import (
	"fmt"
	"reflect"
)

// holdsNil reports whether a V can be nil, so that a format's null stands for a
// value of it.
func holdsNil[V any]() bool {
	switch reflect.TypeFor[V]().Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return true
	default:
		return false
	}
}

// recoverTo turns a panic of the function that defers it into an error.
func recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panicked: %v", p)
	}
}

// writer appends what is written to it.
type writer struct{ buf []byte }

func (w *writer) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	return len(p), nil
}

func (w *writer) WriteByte(b byte) error {
	w.buf = append(w.buf, b)
	return nil
}
