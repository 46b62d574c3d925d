package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// mostColumns bounds what a line of CSV is split into.
const mostColumns = 64

// separated splits a line at its commas. A field may stand in quotes, inside of which a
// quote is doubled; a field has no line ends. The result is good until the next call.
type separated struct{ fields [][]byte }

func (s *separated) split(line []byte) ([][]byte, error) {
	s.fields = s.fields[:0]
	for {
		if len(s.fields) == mostColumns {
			return nil, fmt.Errorf("more than %d columns", mostColumns)
		}
		field, rest, more := bytes.Cut(line, []byte{','})
		if trimmed := bytes.TrimLeft(line, " \t"); len(trimmed) > 0 && trimmed[0] == '"' {
			var err error
			if field, rest, more, err = unquote(trimmed[1:]); err != nil {
				return nil, err
			}
			s.fields = append(s.fields, field)
		} else {
			s.fields = append(s.fields, bytes.TrimSpace(field))
		}
		if !more {
			return s.fields, nil
		}
		line = rest
	}
}

// unquote reads on behind a quote.
func unquote(line []byte) (field, rest []byte, more bool, err error) {
	for i := 0; i < len(line); i++ {
		if line[i] != '"' {
			continue
		}
		if i+1 < len(line) && line[i+1] == '"' {
			i++
			continue
		}
		field = line[:i]
		if bytes.IndexByte(field, '"') >= 0 {
			field = bytes.ReplaceAll(field, []byte(`""`), []byte(`"`))
		}
		behind, rest, more := bytes.Cut(line[i+1:], []byte{','})
		if len(bytes.TrimSpace(behind)) > 0 {
			return nil, nil, false, errors.New("text behind a closing quote")
		}
		return field, rest, more, nil
	}
	return nil, nil, false, errors.New("a quote is not closed")
}

// tabular is a parser whose columns a header names.
type tabular interface {
	parser
	// begin takes the header.
	begin(header [][]byte) error
}

// newTable reads the header, without which no line can be read. A trace of nothing at all
// has none.
func newTable(s *source, p tabular) (*lines, error) {
	l := newLines(s, p)
	for {
		line, err := l.line()
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		fields, err := new(separated).split(line)
		if err == nil {
			err = p.begin(fields)
		}
		if err != nil {
			return nil, l.malformed(err)
		}
		return l, nil
	}
}

// timeColumns are the names under which times go.
var timeColumns = []string{"time", "timestamp", "op_time", "clock_time", "real_time"}

// header finds columns by their names.
type header []string

// newHeader takes a line for a header.
func newHeader(fields [][]byte) header {
	h := make(header, len(fields))
	for i, f := range fields {
		h[i] = strings.ToLower(string(bytes.TrimLeft(f, "# ")))
	}
	return h
}

// column returns the place of the first of the names that the header has, or -1.
func (h header) column(names ...string) int {
	for _, name := range names {
		if i := slices.Index(h, name); i >= 0 {
			return i
		}
	}
	return -1
}
