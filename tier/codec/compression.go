package codec

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Algorithm is how payloads are compressed. Its number is part of the wire format.
type Algorithm byte

const (
	// None leaves payloads as they are.
	None Algorithm = iota
	// S2 is quick, and enough for the repeated names of JSON.
	S2
	// Zstd makes payloads smaller than S2 does, for several times the time.
	Zstd
)

// String returns the algorithm's name: none, s2 or zstd.
func (a Algorithm) String() string {
	switch a {
	case None:
		return "none"
	case S2:
		return "s2"
	case Zstd:
		return "zstd"
	default:
		return fmt.Sprintf("Algorithm(%d)", byte(a))
	}
}

const (
	// DefaultMinSize is the size in bytes below which a payload is not compressed,
	// where [Compression] names none: what it would save is less than what the envelope,
	// the key and the request take anyway.
	DefaultMinSize = 1 << 10

	// DefaultMaxSize is the size in bytes above which a payload is not decompressed,
	// where [Compression] names none.
	DefaultMaxSize = 64 << 20

	// maxMaxSize keeps sizes within an int and within what S2 can declare.
	maxMaxSize = 1 << 30
)

// Compression is a [tier.Compressor]. The zero value compresses nothing and reads all
// algorithms. What it writes and reads is independent: algorithm and MinSize can be
// changed at any time, in one process after the other.
//
// It is safe for concurrent use and holds nothing that would have to be closed.
type Compression struct {
	// Algorithm is what payloads are compressed with.
	Algorithm Algorithm

	// MinSize is how many bytes a payload must have to be compressed. Zero:
	// [DefaultMinSize]; 1: all are.
	MinSize int

	// MaxSize is how many bytes a payload may have when it is decompressed, so that a
	// few bytes in a store cannot take all of a process's memory. An entry that
	// declares more is unreadable, and a larger payload is not compressed. Each
	// decompression allocates what the entry declares, up to this; a forged Zstd entry
	// that holds more than it declares takes up to three times as much until that is
	// noticed. Zero: [DefaultMaxSize]; at most 1 GiB.
	MaxSize int
}

// Validate returns what is wrong with the settings, or nil.
func (c Compression) Validate() error {
	switch {
	case c.Algorithm > Zstd:
		return fmt.Errorf("terrace: there is no compression algorithm %d", byte(c.Algorithm))
	case c.MinSize < 0:
		return fmt.Errorf("terrace: compression MinSize of %d is negative", c.MinSize)
	case c.MaxSize < 0 || c.MaxSize > maxMaxSize:
		return fmt.Errorf("terrace: compression MaxSize of %d is not within 0 to %d", c.MaxSize, maxMaxSize)
	case c.Algorithm != None && c.minSize() > c.maxSize():
		return fmt.Errorf("terrace: compression MinSize of %d is above MaxSize of %d", c.minSize(), c.maxSize())
	default:
		return nil
	}
}

func (c Compression) minSize() int {
	if c.MinSize == 0 {
		return DefaultMinSize
	}
	return c.MinSize
}

func (c Compression) maxSize() int {
	if c.MaxSize == 0 {
		return DefaultMaxSize
	}
	return c.MaxSize
}

// Compress implements [tier.Compressor].
func (c Compression) Compress(dst, payload []byte) ([]byte, byte) {
	if c.Algorithm == None || len(payload) < c.minSize() || len(payload) > c.maxSize() {
		return dst, 0
	}
	var out []byte
	switch c.Algorithm {
	case S2:
		out = appendS2(dst, payload)
	case Zstd:
		out = appendZstd(dst, payload)
	}
	if out == nil || len(out)-len(dst) >= len(payload) {
		return dst, 0
	}
	return out, byte(c.Algorithm)
}

var (
	errTooLong   = errors.New("decompressed, the payload would be too large")
	errCorrupt   = errors.New("the compressed payload is corrupt")
	errAlgorithm = fmt.Errorf("%w: compression algorithm", errors.ErrUnsupported)
)

// Decompress implements [tier.Compressor].
func (c Compression) Decompress(data []byte, algorithm byte) ([]byte, error) {
	switch Algorithm(algorithm) {
	case S2:
		return decodeS2(data, c.maxSize())
	case Zstd:
		return decodeZstd(data, c.maxSize())
	default:
		return nil, errAlgorithm
	}
}

func appendS2(dst, payload []byte) []byte {
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(payload)))
	return dst[:len(dst)+len(s2.Encode(dst[len(dst):cap(dst)], payload))]
}

func decodeS2(data []byte, limit int) ([]byte, error) {
	n, err := s2.DecodedLen(data)
	switch {
	case err != nil:
		return nil, errCorrupt
	case n > limit:
		return nil, errTooLong
	}
	payload, err := s2.Decode(make([]byte, n), data)
	if err != nil {
		return nil, errCorrupt
	}
	return payload, nil
}

// zstdEncoder is a zstd encoder that works on its caller's goroutine.
type zstdEncoder struct {
	*zstd.Encoder
	out writer
}

// zstdEncoders are streaming encoders: EncodeAll draws from a channel, which is made
// at the first use, and one that is made in a testing/synctest bubble ends the process
// when it is used outside. They take 1.5 MB each, which the pool gives back.
var zstdEncoders = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false),   // the envelope has a checksum
		zstd.WithSingleSegment(true), // declares every size
		zstd.WithWindowSize(1<<20),   // bounds what an encoder keeps
		zstd.WithLowerEncoderMem(true),
	)
	if err != nil {
		panic(err) // the options are constant
	}
	return &zstdEncoder{Encoder: e}
}}

// appendZstd returns nil for an error, which nothing but a defect below can cause.
func appendZstd(dst, payload []byte) []byte {
	e := zstdEncoders.Get().(*zstdEncoder)
	e.out.buf = slices.Grow(dst, len(payload)/2)
	e.ResetContentSize(&e.out, int64(len(payload)))
	_, err := e.Write(payload)
	if err == nil {
		err = e.Close()
	}
	out := e.out.buf
	e.out.buf = nil
	if err != nil {
		return nil
	}
	zstdEncoders.Put(e)
	return out
}

// zstdDecoder decodes on its callers' goroutines, as many at a time as there are
// processors. It is made here and not at the first use for the reason that
// zstdEncoders has, and takes 1 KB for each processor before it is used.
var zstdDecoder = func() *zstd.Decoder {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(0),
		zstd.WithDecoderMaxMemory(maxMaxSize),
		zstd.WithDecodeAllCapLimit(true), // each use brings its own limit
	)
	if err != nil {
		panic(err) // the options are constant
	}
	return d
}()

// zstdMaxRatio is how many bytes one byte of a frame can stand for: a block takes at
// least 4 bytes and holds at most 128 KiB.
const zstdMaxRatio = 128 << 10 / 4

func decodeZstd(data []byte, limit int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(data); err != nil || h.Skippable || !h.HasFCS {
		return nil, errCorrupt
	}
	n := h.FrameContentSize
	switch {
	case n > uint64(limit):
		return nil, errTooLong
	case n > uint64(len(data))*zstdMaxRatio:
		return nil, errCorrupt
	}
	payload, err := zstdDecoder.DecodeAll(data, make([]byte, 0, n))
	if err != nil || uint64(len(payload)) != n {
		return nil, errCorrupt
	}
	return payload, nil
}
