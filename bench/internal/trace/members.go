package trace

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// An archive may be several in a row, which are one trace. Behind the last there may be
// NUL bytes, with which tapes and downloads fill their last block; xz has its own rule for
// them, and its unpacker keeps it.

// errBehind is of what follows an archive and is no other one.
var errBehind = errors.New("behind the end of the archive there is something that is not packed")

const gzipMagic = "\x1f\x8b"

// gzipMembers reads all members of a gzip archive.
type gzipMembers struct {
	*gzip.Reader
	from *bufio.Reader
}

func openGzip(from *bufio.Reader) (io.Reader, error) {
	r, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	r.Multistream(false)
	return &gzipMembers{r, from}, nil
}

func (g *gzipMembers) Read(p []byte) (int, error) {
	for {
		n, err := g.Reader.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		if err := skipPadding(g.from); err != nil {
			return 0, err
		}
		head, err := g.from.Peek(len(gzipMagic))
		switch {
		case string(head) == gzipMagic:
		case errors.Is(err, io.EOF) && head[0] == gzipMagic[0]:
			return 0, io.ErrUnexpectedEOF
		case err != nil && !errors.Is(err, io.EOF):
			return 0, err
		default:
			return 0, errBehind
		}
		if err := g.Reset(g.from); err != nil {
			return 0, err
		}
		g.Multistream(false)
	}
}

// skipPadding passes over NUL bytes. The error is io.EOF where nothing else follows.
func skipPadding(from *bufio.Reader) error {
	for {
		if _, err := from.Peek(1); err != nil {
			return err
		}
		held, _ := from.Peek(from.Buffered())
		rest := bytes.TrimLeft(held, "\x00")
		_, _ = from.Discard(len(held) - len(rest)) // they are there
		if len(rest) > 0 {
			return nil
		}
	}
}

func openZstd(from *bufio.Reader) (io.Reader, error) {
	source := &zeroCounter{Reader: from}
	d, err := zstd.NewReader(source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow))
	if err != nil {
		return nil, err
	}
	other := func(err error) bool { return errors.Is(err, zstd.ErrMagicMismatch) }
	return &padded{d.IOReadCloser(), source, other, 4}, nil
}

func openBzip2(from *bufio.Reader) (io.Reader, error) {
	source := &zeroCounter{Reader: from}
	other := func(err error) bool {
		return errors.As(err, new(bzip2.StructuralError)) && err.Error() == "bzip2 data invalid: bad magic value in continuation file"
	}
	return &padded{io.NopCloser(bzip2.NewReader(source)), source, other, 2}, nil
}

// padded is an unpacker that goes from one archive to the next by itself, and takes no
// padding behind the last.
type padded struct {
	io.ReadCloser
	from *zeroCounter
	// other reports whether the error is that no archive begins where one has ended, by as
	// many bytes, which are read.
	other func(error) bool
	bytes int
}

func (p *padded) Read(to []byte) (int, error) {
	n, err := p.ReadCloser.Read(to)
	if err == nil || !p.other(err) {
		return n, err
	}
	if p.from.zeros < p.bytes {
		return n, errBehind
	}
	if err := skipPadding(p.from.Reader); err != nil {
		return n, err
	}
	return n, errBehind
}

// zeroCounter counts the NUL bytes with which ends what was read.
type zeroCounter struct {
	*bufio.Reader
	zeros int
}

func (z *zeroCounter) Read(p []byte) (int, error) {
	n, err := z.Reader.Read(p)
	if ends := len(bytes.TrimRight(p[:n], "\x00")); ends > 0 {
		z.zeros = n - ends
	} else {
		z.zeros += n
	}
	return n, err
}

func (z *zeroCounter) ReadByte() (byte, error) {
	c, err := z.Reader.ReadByte()
	if c == 0 && err == nil {
		z.zeros++
	} else {
		z.zeros = 0
	}
	return c, err
}
