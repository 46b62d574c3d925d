package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

const (
	// longestLine is how long a line may be, in bytes; of a longer one no more is held.
	longestLine = 1 << 20
	// longestRun is how many requests a line may stand for. The largest that is known
	// is a few thousand; a slip in a file must not be worked off for days.
	longestRun = 1 << 24
)

// run is the requests that a line stands for.
type run struct {
	Request
	left   uint64 // how many, with the one above; zero: the line holds none and is no fault
	stride uint64 // from one key to the next
}

func (r *run) one(q Request) error {
	r.Request, r.left, r.stride = q, 1, 0
	return nil
}

// parser makes requests of lines. Its errors say what is wrong with the line.
type parser interface {
	parse(line []byte, to *run) error
	fields() Fields
}

// lines is the decoder of formats of text. A line is without its end, and never blank.
type lines struct {
	parser
	source *source
	trim   func([]byte) []byte
	number int64
	run    run
}

func newLines(s *source, p parser) *lines {
	l := &lines{parser: p, source: s, trim: bytes.TrimSpace}
	if own, ok := p.(interface{ trim([]byte) []byte }); ok {
		l.trim = own.trim
	}
	return l
}

func (l *lines) next(to *Request) error {
	for l.run.left == 0 {
		line, err := l.line()
		if err != nil {
			return err
		}
		if line = l.trim(line); len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if bytes.IndexByte(line, 0) >= 0 {
			return l.malformed(errors.New("a NUL byte, which no text has"))
		}
		l.run.left = 0
		if err := l.parse(line, &l.run); err != nil {
			l.run.left = 0
			return l.malformed(err)
		}
	}
	*to = l.run.Request
	l.run.left--
	l.run.Key += l.run.stride
	return nil
}

func (l *lines) malformed(why error) error { return &Malformed{Number: l.number, Why: why.Error()} }

var byteOrderMark = []byte("\xef\xbb\xbf")

// line returns the next line, until the next call.
func (l *lines) line() ([]byte, error) {
	l.number++
	line, err := l.source.ReadSlice('\n')
	if l.number == 1 {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	switch {
	case err == nil:
		return line, nil
	case errors.Is(err, io.EOF) && len(line) > 0:
		return line, nil
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case errors.Is(err, bufio.ErrBufferFull):
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.source.ReadSlice('\n')
		}
		if err == nil || errors.Is(err, io.EOF) {
			return nil, l.malformed(fmt.Errorf("longer than %d bytes", longestLine))
		}
		fallthrough
	default:
		return nil, &Broken{err} // what there is of the line may be cut
	}
}

// columns splits a line at white space into as many fields as there is room for, and
// returns how many there are.
func columns(line []byte, to [][]byte) int {
	n := 0
	for i := 0; i < len(line); {
		if isSpace(line[i]) {
			i++
			continue
		}
		from := i
		for i < len(line) && !isSpace(line[i]) {
			i++
		}
		if n < len(to) {
			to[n] = line[from:i]
		}
		n++
	}
	return n
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// whole reads a decimal number of at least zero, which tools that know no others may have
// written with a fraction of zeros.
func whole(text []byte, what string) (uint64, error) {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		if before, fraction, has := bytes.Cut(text, []byte{'.'}); has && len(bytes.Trim(fraction, "0")) == 0 {
			n, err = strconv.ParseUint(string(before), 10, 64)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("%s %s: want a whole number of at least 0 that 64 bits can hold", what, quoted(text))
	}
	return n, nil
}

// instant reads a time in seconds, with a fraction or without, or by RFC 3339.
func instant(text []byte) (float64, error) {
	if t, err := time.Parse(time.RFC3339, string(text)); err == nil {
		return float64(t.Unix()) + float64(t.Nanosecond())/1e9, nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) > latest {
		return 0, fmt.Errorf("time %s: want a number of seconds, or a time by RFC 3339", quoted(text))
	}
	return v, nil
}

// latest is more than nanoseconds since 1970 can be, which some take for seconds.
const latest = 1 << 63

// size reads a number of bytes.
func size(text []byte, what string) (int64, error) {
	n, err := whole(text, what)
	if err == nil && n > mostSize {
		err = fmt.Errorf("%s %d: want at most %d bytes", what, n, int64(mostSize))
	}
	return int64(n), err
}

// mostSize leaves room for the sum of many.
const mostSize = 1 << 48

// quoted shows what a line has, which may be long and anything.
func quoted(text []byte) string {
	const most = 32
	if len(text) > most {
		return strconv.Quote(string(text[:most])) + "…"
	}
	return strconv.Quote(string(text))
}

// wantFields is the error of a line with another number of fields.
func wantFields(got int, want string) error { return fmt.Errorf("%d fields: want %s", got, want) }
