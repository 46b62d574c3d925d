package codec_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

var _ tier.Compressor = codec.Compression{}

func TestCompression(t *testing.T) {
	for _, a := range []codec.Algorithm{codec.S2, codec.Zstd} {
		c := codec.Compression{Algorithm: a, MinSize: 1}
		for _, n := range []int{100, 1 << 10, 128 << 10, 128<<10 + 1, 1 << 20, 5 << 20} {
			payload := bytes.Repeat([]byte("payload "), n/8)
			before := bytes.Clone(payload)
			out, algorithm := c.Compress([]byte("envelope"), payload)
			if algorithm != byte(a) || !bytes.HasPrefix(out, []byte("envelope")) || len(out) >= n {
				t.Fatalf("%v, %d bytes: algorithm %d, %d bytes", a, n, algorithm, len(out))
			}
			if !bytes.Equal(payload, before) {
				t.Errorf("%v, %d bytes: the payload was changed", a, n)
			}
			got, err := codec.Compression{}.Decompress(out[8:], algorithm)
			if err != nil || !bytes.Equal(got, payload) {
				t.Errorf("%v, %d bytes: %d bytes come back, %v", a, n, len(got), err)
			}
		}
		dst := []byte("envelope")
		for _, payload := range [][]byte{nil, {}, {1}, []byte("short")} {
			if out, algorithm := c.Compress(dst, payload); algorithm != 0 || !bytes.Equal(out, dst) {
				t.Errorf("%v of %q: algorithm %d, %q", a, payload, algorithm, out)
			}
		}
	}
	for _, algorithm := range []byte{0, 3, 255} {
		if _, err := (codec.Compression{}).Decompress(nil, algorithm); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("algorithm %d: got error %v, want errors.ErrUnsupported", algorithm, err)
		}
	}
}

func TestCompressionValidate(t *testing.T) {
	for _, c := range []codec.Compression{
		{}, {Algorithm: codec.Zstd, MinSize: 1, MaxSize: 1}, {Algorithm: codec.S2, MaxSize: 1 << 30}, {MinSize: math.MaxInt},
	} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []codec.Compression{
		{Algorithm: 3}, {MinSize: -1}, {MaxSize: -1}, {MaxSize: 1<<30 + 1},
		{Algorithm: codec.S2, MaxSize: 1000}, {Algorithm: codec.Zstd, MinSize: 65 << 20},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	for a, want := range map[codec.Algorithm]string{codec.None: "none", codec.S2: "s2", codec.Zstd: "zstd", 7: "Algorithm(7)"} {
		if got := a.String(); got != want {
			t.Errorf("String of %d = %q, want %q", a, got, want)
		}
	}
}

func FuzzDecompress(f *testing.F) {
	for _, a := range []codec.Algorithm{codec.S2, codec.Zstd} {
		out, _ := codec.Compression{Algorithm: a}.Compress(nil, bytes.Repeat([]byte("payload "), 1000))
		f.Add(out)
	}
	const limit = 1 << 16
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, a := range []codec.Algorithm{codec.S2, codec.Zstd} {
			payload, err := codec.Compression{MaxSize: limit}.Decompress(data, byte(a))
			if len(payload) > limit || (err != nil && payload != nil) {
				t.Errorf("%v: %d bytes, %v", a, len(payload), err)
			}
			// What is compressed comes back, whatever it is.
			if out, algorithm := (codec.Compression{Algorithm: a, MinSize: 1}).Compress(nil, data); algorithm != 0 {
				if got, err := (codec.Compression{}).Decompress(out, algorithm); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%v: %q comes back as %q, %v", a, data, got, err)
				}
			}
		}
	})
}
