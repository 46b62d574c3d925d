package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/mikelolasagasti/xz"
)

// compressions are told apart by how they begin.
var compressions = []struct {
	name   string
	magic  []string
	suffix []string
	open   func(*bufio.Reader) (io.Reader, error)
}{
	{"gzip", []string{gzipMagic}, []string{".gz", ".gzip"}, openGzip},
	{"xz", []string{"\xfd7zXZ\x00"}, []string{".xz"}, func(r *bufio.Reader) (io.Reader, error) { return xz.NewReader(r, mostWindow) }},
	// An archive may begin with a frame to be skipped, as that of pzstd does.
	{"zstd", []string{"\x28\xb5\x2f\xfd", "?\x2a\x4d\x18"}, []string{".zst", ".zstd"}, openZstd},
	// With the first block's magic, or the end's of an empty one: a text may begin with BZh.
	{"bzip2", []string{"BZh?\x31\x41\x59\x26\x53\x59", "BZh?\x17\x72\x45\x38\x50\x90"}, []string{".bz2", ".bzip2"},
		openBzip2},
}

// mostWindow bounds the memory that an archive can ask for, at what the zstd command accepts
// without being told to, and twice what xz -9 writes.
const mostWindow = 128 << 20

// unpacked is a trace as it is when unpacked.
type unpacked struct {
	io.Reader
	name  string
	close io.Closer
}

// unpack tells by the first bytes whether and how the trace is packed.
func unpack(from io.Reader, name string) (*unpacked, error) {
	buffered := bufio.NewReaderSize(from, 256<<10)
	head, err := buffered.Peek(16)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return nil, &Broken{err}
	}
	suffix := strings.ToLower(filepath.Ext(name))
	for _, c := range compressions {
		packed := false
		for _, magic := range c.magic {
			packed = packed || begins(head, magic)
		}
		if !packed {
			for _, s := range c.suffix {
				if s == suffix && len(head) > 0 {
					return nil, fmt.Errorf("is not %s, as its name says: it begins with %q", c.name, head[:min(len(head), 6)])
				}
			}
			continue
		}
		u := &unpacked{name: c.name}
		err := guard(func() (err error) {
			u.Reader, err = c.open(buffered)
			return err
		})
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // it has begun
		}
		if err != nil {
			return nil, &Broken{unpacking(err)}
		}
		u.close, _ = u.Reader.(io.Closer)
		u.Reader = &guarded{Reader: u.Reader}
		return u, nil
	}
	return &unpacked{Reader: buffered}, nil
}

// begins reports whether head begins with the magic, in which ? is any byte.
func begins(head []byte, magic string) bool {
	if len(head) < len(magic) {
		return false
	}
	for i := range len(magic) {
		if magic[i] != '?' && magic[i] != head[i] {
			return false
		}
	}
	return true
}

// guarded makes errors of the panics of an unpacker that meets what it did not expect. Its
// first error is its last: who looks ahead meets it earlier than who reads, and some
// unpackers would then go on in the middle of something.
type guarded struct {
	io.Reader
	err error
}

func (g *guarded) Read(p []byte) (n int, err error) {
	if g.err != nil {
		return 0, g.err
	}
	panicked := guard(func() error {
		n, err = g.Reader.Read(p)
		return nil
	})
	if panicked != nil {
		n, err = 0, panicked
	}
	g.err = unpacking(err)
	return n, g.err
}

// unpacking says of an unpacker's error what it means: most take the end of an archive
// that is cut off for damage.
func unpacking(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errBehind) || errors.As(err, new(*fs.PathError)) {
		return err
	}
	return fmt.Errorf("the archive is cut off or damaged: %w", err)
}

func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return f()
}

// isTar reports whether what was unpacked is an archive of files.
func isTar(head []byte) bool {
	const at = 257
	return len(head) > at+5 && bytes.Equal(head[at:at+5], []byte("ustar"))
}
