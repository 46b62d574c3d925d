package tier

import (
	"errors"
	"fmt"
)

// Compressor makes payloads smaller on their way into a byte store. It is used
// concurrently. Where it is a [Validator] too, a cache checks it before it is used.
//
// Each entry says how it was compressed, so a reader takes every algorithm that its
// Compressor knows, whatever that writes itself.
type Compressor interface {
	// Compress appends a smaller form of the payload to dst and returns the longer
	// slice and the number of the algorithm, 1 to 15. It returns 0 where the payload is
	// better left as it is: below a size at which it is worth the time, or where it does
	// not shrink. It does not change or keep the payload, which is not part of dst.
	Compress(dst, payload []byte) (_ []byte, algorithm byte)

	// Decompress returns the payload that data holds, in a slice of its own. The data
	// may be anything: it must not make Decompress allocate without a bound. An error
	// that is errors.ErrUnsupported says that the algorithm is not known. No error may
	// hold any of the data.
	Decompress(data []byte, algorithm byte) ([]byte, error)
}

// Sealer encrypts what a byte store holds and notices whatever was changed there. It
// is used concurrently. Where it is a [Validator] too, a cache checks it before it is
// used.
type Sealer interface {
	// Scheme is the number of the kind of encryption, 1 to 15. It does not change.
	Scheme() byte

	// Seal appends the plaintext, encrypted and authenticated together with the
	// additional data, to dst and returns the longer slice. It does not change or keep
	// what it is given, and dst shares no memory with it.
	Seal(dst, plaintext, additional []byte) ([]byte, error)

	// Open returns what Seal was given as plaintext, in a slice of its own, or an error
	// unless both sealed and additional are, byte for byte, those of one Seal. No error
	// may hold any of the bytes.
	Open(sealed, additional []byte) ([]byte, error)
}

// transforms are what is done to an entry between the codec and the byte store. The
// envelope's fourth byte tells for each entry what was: the algorithm of compression
// in its low half, the scheme of encryption in its high half.
type transforms struct {
	compression Compressor
	encryption  Sealer
}

// validate returns what is wrong with the transforms themselves, or nil.
func (t transforms) validate() error {
	for _, x := range []any{t.compression, t.encryption} {
		if v, ok := x.(Validator); ok {
			if err := v.Validate(); err != nil {
				return err
			}
		}
	}
	if t.encryption != nil {
		if n := t.encryption.Scheme(); n < 1 || n > 15 {
			return fmt.Errorf("terrace: encryption scheme %d is not within 1 to 15", n)
		}
	}
	return nil
}

// undoes reports whether an envelope with this transform byte can be read here. With
// encryption nothing else is: whoever can write to the store could put plain entries
// there. But a tombstone is always plain. It makes a miss, which whoever can write can
// make by a deletion as well, and it must stop processes of every setting.
func (t transforms) undoes(transform, flags byte) bool {
	if flags&flagTombstone != 0 {
		return transform == 0
	}
	algorithm, scheme := transform&0x0f, transform>>4
	if algorithm != 0 && (t.compression == nil || flags&(flagAbsent|flagNil) != 0) {
		return false
	}
	if t.encryption == nil {
		return scheme == 0
	}
	return scheme == t.encryption.Scheme()
}

// compress compresses the payload that begins in b at the given offset.
func (t transforms) compress(b []byte, payload int) (_ []byte, err error) {
	if t.compression == nil || payload == len(b) {
		return b, nil
	}
	defer recoverTransform(&err)
	out, algorithm := t.compression.Compress(b[:payload:payload], b[payload:])
	switch {
	case algorithm == 0:
		return b, nil
	case algorithm > 15:
		return nil, fmt.Errorf("compression algorithm %d is not within 1 to 15", algorithm)
	}
	out[3] |= algorithm
	return out, nil
}

// decompress returns the payload that data holds.
func (t transforms) decompress(data []byte, transform byte) (payload []byte, err error) {
	algorithm := transform & 0x0f
	if algorithm == 0 {
		return data, nil
	}
	defer recoverTransform(&err)
	return t.compression.Decompress(data, algorithm)
}

// seal encrypts all that follows the fixed part of the envelope b, which is complete
// but for its checksum.
func (t transforms) seal(b []byte, key string) (_ []byte, err error) {
	if t.encryption == nil {
		return b, nil
	}
	defer recoverTransform(&err)
	b[3] |= t.encryption.Scheme() << 4
	const overhead = 64 // of a sealer, about
	out := append(make([]byte, 0, len(b)+overhead), b[:envelopeSize]...)
	return t.encryption.Seal(out, b[envelopeSize:], sealedHeader(b, key))
}

// open returns what follows the fixed part of the envelope b, decrypted.
func (t transforms) open(b []byte, key string) (_ []byte, err error) {
	if b[3]>>4 == 0 {
		return b[envelopeSize:], nil
	}
	defer recoverTransform(&err)
	return t.encryption.Open(b[envelopeSize:], sealedHeader(b, key))
}

// sealedHeader is what encryption authenticates besides what it hides: the fixed part
// without its checksum, which is over the encrypted bytes, and the key, so that nobody
// can lengthen a life or move an entry to another key. It needs no lengths, as only
// the last part varies.
func sealedHeader(b []byte, key string) []byte {
	header := make([]byte, 0, envelopeSize-4+len(key))
	header = append(header, b[:20]...)
	header = append(header, b[24:envelopeSize]...)
	return append(header, key...)
}

// transformError is the error of an entry whose transform could not be undone.
func transformError(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return &UnreadableError{Reason: "transform"}
	}
	return &UnreadableError{Reason: "decode", Err: err}
}

// recoverTransform turns a panic into an error. What panicked is not shown: it had
// the plaintext and the keys at hand.
func recoverTransform(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("compression or encryption panicked (%T)", p)
	}
}
