package trace_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/terracecache/terrace/bench/internal/trace"
)

// Of "1\n2\n1\n3\n", as xz and bzip2 pack it: there is no Go that writes them.
const (
	packedXZ    = "/Td6WFoAAATm1rRGAgAhARYAAAB0L+WjAQAHMQoyCjEKMwoAPAQngKVzslUAASAIuxnZux+2830BAAAAAARZWg=="
	packedBzip2 = "QlpoOTFBWSZTWUiyv6MAAAJIAAAQOAAgADDNNBIaKiHF3JFOFCQSLK/owA=="
)

// archives packs the text; those that cannot be are of "1\n2\n1\n3\n".
func archives(t testing.TB, text []byte) map[string][]byte {
	all := make(map[string][]byte)
	for name, packed := range map[string]string{"x.xz": packedXZ, "x.bz2": packedBzip2} {
		data, err := base64.StdEncoding.DecodeString(packed)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = data
	}
	for name, open := range map[string]func(io.Writer) (io.WriteCloser, error){
		"x.gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"x.zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	} {
		var b bytes.Buffer
		w, err := open(&b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		all[name] = b.Bytes()
	}
	return all
}

// TestCompressions: what is packed is told by how it begins, whatever its name is, and two
// archives in a row are one.
func TestCompressions(t *testing.T) {
	for name, packed := range archives(t, []byte("1\n2\n1\n3\n")) {
		for _, test := range []struct {
			name  string
			input []byte
			want  string
		}{
			{name, packed, "a b a c"},
			{"stdin", packed, "a b a c"},
			{name, slices.Concat(packed, packed), "a b a c a b a c"},
			{"skipped.zst", slices.Concat([]byte("\x50\x2a\x4d\x18\x03\x00\x00\x00abc"), archives(t, []byte("1\n2\n1\n3\n"))["x.zst"]), "a b a c"},
		} {
			r, err := trace.NewReader(bytes.NewReader(test.input), trace.Options{Name: test.name})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if r.Compression() == "" {
				t.Errorf("%s: not unpacked", name)
			}
			if got := strings.Join(told(r, true), " "); got != test.want {
				t.Errorf("%s as %s: %s, want %s", name, test.name, got, test.want)
			}
			if got := r.Consumed(); got != int64(len(test.input)) {
				t.Errorf("%s: %d bytes consumed of %d", name, got, len(test.input))
			}
			r.Close()
		}
	}
}

// TestCutArchive cuts archives at each byte: what can be read is read, no line is given
// that was cut itself, and in the end there is an error.
func TestCutArchive(t *testing.T) {
	var text bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&text, "key-%d\n", i*i%977)
	}
	whole := strings.Split(strings.TrimSpace(text.String()), "\n")
	for name, packed := range archives(t, text.Bytes()) {
		want, step := whole, 37
		if name == "x.xz" || name == "x.bz2" {
			want, step = []string{"1", "2", "1", "3"}, 1
		}
		names := make(map[string]uint64)
		for _, key := range want {
			r, err := trace.NewReader(strings.NewReader(key), trace.Options{Format: trace.Plain})
			if err != nil {
				t.Fatal(err)
			}
			var q trace.Request
			if err := r.Next(&q); err != nil {
				t.Fatal(err)
			}
			names[key] = q.Key
		}
		most := 0
		for n := 16; n < len(packed); n += step { // before that it is none yet
			r, err := trace.NewReader(bytes.NewReader(packed[:n]), trace.Options{Format: trace.Plain, Name: "x"})
			if err != nil {
				continue
			}
			got := 0
			var q trace.Request
			for ; ; got++ {
				if err = r.Next(&q); err != nil {
					break
				}
				if got == len(want) || q.Key != names[want[got]] {
					t.Fatalf("%s cut at %d of %d: request %d is not the trace's", name, n, len(packed), got)
				}
			}
			if errors.Is(err, io.EOF) && !errors.As(err, new(*trace.Broken)) {
				t.Errorf("%s cut at %d of %d: no error", name, n, len(packed))
			} else if !strings.Contains(err.Error(), "cut off") {
				t.Errorf("%s cut at %d of %d: %v: want that it is cut off", name, n, len(packed), err)
			}
			most = max(most, got)
			r.Close()
		}
		if name == "x.gz" && most < len(want)/2 {
			t.Errorf("%s: at most %d of %d requests of an archive that was cut", name, most, len(want))
		}
	}
}

// TestDamagedArchive turns each byte round: there may be other requests, and no panic.
func TestDamagedArchive(t *testing.T) {
	for name, packed := range archives(t, []byte("1\n2\n1\n3\n")) {
		for i := range packed {
			damaged := bytes.Clone(packed)
			damaged[i] ^= 0xff
			r, err := trace.NewReader(bytes.NewReader(damaged), trace.Options{Name: name, Format: trace.Plain})
			if err != nil {
				continue
			}
			told(r, true)
			r.Close()
		}
	}
}

// Tapes, tar and some downloads fill the last block with NUL bytes, which gzip(1) takes for
// no fault; anything else behind the end is told.
func TestBehindAnArchive(t *testing.T) {
	for name, packed := range archives(t, []byte("1\n2\n1\n3\n")) {
		for _, test := range []struct {
			name  string
			input []byte
			want  string
		}{
			{"padded", slices.Concat(packed, make([]byte, 512)), "a b a c"},
			{"padded by much", slices.Concat(packed, make([]byte, 1<<20)), "a b a c"},
			{"two, padded", slices.Concat(packed, packed, make([]byte, 12)), "a b a c a b a c"},
			{"text behind it", slices.Concat(packed, []byte("4\n")), "a b a c broken"},
			{"text behind padding", slices.Concat(packed, make([]byte, 512), []byte("4\n5\n")), "a b a c broken"},
			{"the next is cut", slices.Concat(packed, packed[:1]), "a b a c broken"},
		} {
			r, err := trace.NewReader(bytes.NewReader(test.input), trace.Options{Name: name})
			if err != nil {
				t.Fatalf("%s, %s: %v", name, test.name, err)
			}
			if got := strings.Join(told(r, true), " "); got != test.want {
				t.Errorf("%s, %s: %s, want %s", name, test.name, got, test.want)
			}
			r.Close()
		}
	}
	// One byte is padding too, and what follows it another member.
	packed := archives(t, []byte("1\n2\n"))["x.gz"]
	r, err := trace.NewReader(bytes.NewReader(slices.Concat(packed, []byte{0}, packed, []byte{0})), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(told(r, true), " "); got != "a b a b" {
		t.Errorf("got %s, want both members", got)
	}
}

// What follows an archive and is none is not called an archive that is cut off.
func TestTextBehindAnArchive(t *testing.T) {
	for name, packed := range archives(t, []byte("1\n")) {
		if name == "x.xz" {
			continue // its unpacker cannot tell
		}
		r, err := trace.NewReader(bytes.NewReader(slices.Concat(packed, []byte("some text\n"))), trace.Options{Name: name, Format: trace.Plain})
		for q := new(trace.Request); err == nil; {
			err = r.Next(q)
		}
		if !strings.Contains(err.Error(), "behind the end of the archive") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of an archive that is cut off before its format can be told it is said that it is cut off.
func TestArchiveCutBeforeItsFormat(t *testing.T) {
	for _, text := range []string{"0,a key,2,100,3,get,0\n1,k,2,100,3,set,0\n", "op_time,key,op,op_count\n1,k,GET,1\n", "l 0x1 1\nl 0x2 1\n"} {
		for _, name := range []string{"x.gz", "x.csv.gz"} {
			packed := archives(t, []byte(text))["x.gz"]
			for n := 3; n < len(packed); n++ {
				r, err := trace.NewReader(bytes.NewReader(packed[:n]), trace.Options{Name: name})
				if err == nil {
					r.Close()
				} else if !errors.As(err, new(*trace.Broken)) {
					t.Errorf("%s of %q cut at %d of %d: %v", name, text, n, len(packed), err)
				}
			}
		}
	}
}
