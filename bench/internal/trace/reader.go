package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// Options are what [NewReader] is told.
type Options struct {
	// Name is that of the file, by which formats are told apart. It is not opened.
	Name string
	// Format is how the trace is written. Empty: as name and beginning say.
	Format Format
	// Times says that the requests' times are asked for. Without it a column of a CSV that
	// has them is not read, and may hold anything.
	Times bool
	// Seed is of the hash of keys that are text.
	Seed uint64
}

// Malformed is the error of a line or record that is not of the format. Reading goes on
// behind it.
type Malformed struct {
	Number int64 // from 1, of the line or record
	Record bool  // a record of a binary format
	Why    string
}

func (e *Malformed) Error() string {
	if e.Record {
		return fmt.Sprintf("record %d: %s", e.Number, e.Why)
	}
	return fmt.Sprintf("line %d: %s", e.Number, e.Why)
}

// Broken is the error of a trace that cannot be read on: an archive that is cut off or
// damaged, a disk that fails. What was read before is good.
type Broken struct{ Err error }

func (e *Broken) Error() string {
	if errors.Is(e.Err, io.ErrUnexpectedEOF) {
		return "cut off: the archive ends in the middle"
	}
	return "cannot be read on: " + e.Err.Error()
}

func (e *Broken) Unwrap() error { return e.Err }

// decoder makes requests of what a source yields.
type decoder interface {
	// next returns the next request. Errors are io.EOF, *Malformed and *Broken.
	next(*Request) error
	fields() Fields
}

// Reader yields the requests of a trace. It is for one goroutine, but for
// [Reader.Consumed].
type Reader struct {
	decoder
	format      Format
	looks       Format // as what the beginning would be taken for; empty: it cannot be told
	told        bool   // the format, by whoever opened it
	fieldsOfKey int    // that a key has, if it is a line of a table
	compression string
	consumed    *atomic.Int64
	unpacked    io.Closer // nil: nothing to be released
	end         error

	malformed int64 // so far
	first     *Malformed
}

// NewReader returns a reader of the trace, which it unpacks where it is packed. It has
// then read the beginning. Its errors say that the format or the packing cannot be told.
// Closing what it reads from is the caller's business.
func NewReader(from io.Reader, o Options) (*Reader, error) {
	r := &Reader{consumed: new(atomic.Int64), format: o.Format, told: o.Format != ""}
	unpacked, err := unpack(&counted{from, r.consumed}, o.Name)
	if err != nil {
		return nil, err
	}
	r.compression, r.unpacked = unpacked.name, unpacked.close
	s := &source{Reader: bufio.NewReaderSize(unpacked, longestLine), seed: o.Seed}
	if err := r.begin(s, o); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// begin finds the decoder.
func (r *Reader) begin(s *source, o Options) error {
	if by := named[filepath.Ext(unpackedName(o.Name))]; !r.format.binary() && (r.told || !by.binary()) {
		s.endLines(o.Name)
	}
	looks, err := detect(o.Name, s)
	if errors.As(err, new(*Broken)) {
		return err
	}
	binary := looks.binary() || isBinary(o.Name, s.beginning())
	if r.told {
		binary = r.format.binary()
	}
	if err := isNone(s.beginning(), !binary, !r.told); err != nil {
		return err
	}
	r.looks = looks
	if !r.told && looks == Plain {
		fields, _ := firstFields(s.beginning())
		r.fieldsOfKey = len(fields)
	}
	if !r.told {
		if err != nil {
			if broken := s.broken(); broken != nil {
				return broken // so that there is not enough to tell it by
			}
			return err
		}
		r.format = looks
	}
	if r.decoder, err = newDecoder(r.format, s, o.Times); err != nil {
		return fmt.Errorf("%w%s", err, r.likeness())
	}
	return nil
}

// likeness says as what else the trace would be taken, if it was told and is not that.
func (r *Reader) likeness() string {
	if !r.told || r.looks == "" || r.looks == r.format {
		return ""
	}
	return fmt.Sprintf("; it looks like the format %s", r.looks)
}

// Doubt says what speaks against the format, where all can be read as that all the same;
// empty: nothing does. Numbers of a few bytes may be anything, and keys too.
func (r *Reader) Doubt() string {
	const table = 3
	switch {
	case !r.told && r.fieldsOfKey >= table:
		return fmt.Sprintf("is taken for keys, a line each, the first of which looks like %d columns: a table would have a header with a column key, or be told with --format", r.fieldsOfKey)
	case !r.told || r.looks == "" || r.looks == r.format:
	case r.format.binary() || r.format == Plain && r.looks != LIRS:
		return fmt.Sprintf("is read as %s, as it was told, and looks like the format %s", r.format, r.looks)
	}
	return ""
}

// NoRequests says why there were none, at the end.
func (r *Reader) NoRequests() error {
	switch {
	case r.Consumed() == 0:
		return errors.New("no requests in it: it is empty")
	case r.first == nil && slices.Contains([]Format{LibCacheSim, CacheLib, Twitter}, r.format):
		return errors.New("no requests in it: it has a header and nothing behind it")
	case r.first == nil:
		return errors.New("no requests in it")
	}
	of := "lines"
	if r.first.Record {
		of = "records"
	}
	return fmt.Errorf("no requests in it: all %d %s are not of the format %s, the first is %w%s", r.malformed, of, r.format, r.first, r.likeness())
}

// Next returns the next request. The error is io.EOF at the end, a [*Malformed] where a
// line or record had to be left out, after which it can be called again, or a [*Broken].
func (r *Reader) Next(to *Request) error {
	if r.end != nil {
		return r.end
	}
	err := r.next(to)
	if err == nil {
		return nil
	}
	bad, goesOn := err.(*Malformed) //nolint:errorlint // decoders return it as it is, and errors.As allocates for each of millions
	if !goesOn {
		r.end = err
		return err
	}
	r.malformed++
	if r.first == nil {
		r.first = bad
	}
	return err
}

// Fields says what the requests have beside their keys.
func (r *Reader) Fields() Fields { return r.fields() }

// Format returns how the trace is written.
func (r *Reader) Format() Format { return r.format }

// Compression returns how the trace is packed: "gzip", "xz", "zstd", "bzip2" or "".
func (r *Reader) Compression() string { return r.compression }

// Consumed returns how many bytes were read so far, as they are packed. It may be called
// by anybody at any time.
func (r *Reader) Consumed() int64 { return r.consumed.Load() }

// Close releases what unpacking holds.
func (r *Reader) Close() {
	if r.unpacked != nil {
		r.unpacked.Close()
	}
}

// source is a trace as it is when unpacked.
type source struct {
	*bufio.Reader
	seed uint64
}

// beginning returns up to 64 KiB without consuming them, or a line's greatest length where
// the first is longer. A last line that may be cut is left out, if it is not the first.
func (s *source) beginning() []byte {
	const enough = 64 << 10
	head, err := s.Peek(enough) // an error comes again when it is its turn
	if err == nil && bytes.IndexByte(head, '\n') < 0 {
		head, err = s.Peek(longestLine)
	}
	if end := bytes.LastIndexByte(head, '\n'); err == nil && end >= 0 && !isBinary("", head) {
		head = head[:end+1]
	}
	return head
}

// broken returns that nothing follows of what is buffered, as it cannot be read; or nil.
func (s *source) broken() error {
	_, err := s.Peek(s.Buffered() + 1)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
		return nil
	}
	return &Broken{err}
}

// carriageReturns makes line feeds of them, in a text that ends its lines with nothing else.
type carriageReturns struct{ io.Reader }

func (c carriageReturns) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	for i, b := range p[:n] {
		if b == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// endLines has lines end with line feeds where the beginning has carriage returns alone.
func (s *source) endLines(name string) {
	if head := s.beginning(); bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(bytes.TrimRight(head, "\r"), '\r') >= 0 && !isBinary(name, head) {
		s.Reader = bufio.NewReaderSize(carriageReturns{s.Reader}, longestLine)
	}
}

// counted counts what is read.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// hasher makes keys of texts.
type hasher struct{ seed uint64 }

func (h hasher) hash(text []byte) uint64 {
	if h.seed == 0 {
		return xxhash.Sum64(text)
	}
	var d xxhash.Digest
	d.ResetWithSeed(h.seed)
	_, _ = d.Write(text) // never fails
	return d.Sum64()
}
