package trace

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// mostColumns bounds what a line of CSV is split into.
const mostColumns = 1024

// separators are what may stand between fields: which one, the header or the first row says.
const separators = ",;\t|"

// separated splits a line at its separators. A field may stand in quotes, inside of which a
// quote is doubled; a field has no line ends. The result is good until the next call.
type separated struct {
	by     byte // of separators
	fields [][]byte
}

func (s *separated) split(line []byte) ([][]byte, error) {
	s.fields = s.fields[:0]
	for {
		if len(s.fields) == mostColumns {
			return nil, fmt.Errorf("more than %d columns", mostColumns)
		}
		i := bytes.IndexByte(line, s.by)
		field, rest, more := line, []byte(nil), i >= 0
		if more {
			field, rest = line[:i], line[i+1:]
		}
		if trimmed := bytes.TrimLeft(line, s.blanks()); len(trimmed) > 0 && trimmed[0] == '"' {
			var err error
			if field, rest, more, err = s.unquote(trimmed[1:]); err != nil {
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

// blanks are what may stand around a field.
func (s *separated) blanks() string {
	if s.by == '\t' {
		return " "
	}
	return " \t"
}

// trim removes the end of a line, and no empty field.
func (s *separated) trim(line []byte) []byte {
	if s.by == '\t' {
		return bytes.Trim(line, " \r\n")
	}
	return bytes.TrimSpace(line)
}

// fit leaves out empty fields behind the last column, which some writers end lines with.
func fit(fields [][]byte, n int) [][]byte {
	for len(fields) > n && len(fields[len(fields)-1]) == 0 {
		fields = fields[:len(fields)-1]
	}
	return fields
}

// separatorOf returns the separator that a line has the most of, outside of quotes.
func separatorOf(line []byte) byte {
	var counts [len(separators)]int
	inside, best := false, 0
	for _, c := range line {
		if c == '"' {
			inside = !inside
		}
		if i := strings.IndexByte(separators, c); i >= 0 && !inside {
			counts[i]++
		}
	}
	for i, n := range counts {
		if n > counts[best] {
			best = i
		}
	}
	return separators[best]
}

// unquote reads on behind a quote.
func (s *separated) unquote(line []byte) (field, rest []byte, more bool, err error) {
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
		behind, rest, more := bytes.Cut(line[i+1:], []byte{s.by})
		if len(bytes.TrimSpace(behind)) > 0 {
			return nil, nil, false, errors.New("text behind a closing quote")
		}
		return field, rest, more, nil
	}
	return nil, nil, false, errors.New("a quote is not closed")
}

// firstFields are the fields of the first line that is not blank, and what separates them.
func firstFields(head []byte) (fields [][]byte, by byte) {
	for line := range bytes.Lines(bytes.TrimPrefix(head, byteOrderMark)) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		s := separated{by: separatorOf(line)}
		fields, err := s.split(line)
		if err != nil {
			return nil, s.by
		}
		return fields, s.by
	}
	return nil, separators[0]
}

// timeColumns are the names under which times go.
var timeColumns = []string{"time", "timestamp", "op_time", "clock_time", "real_time"}

// header finds columns by their names, in which case, spaces and what joins words do not
// count.
type header []string

// newHeader takes a line for a header.
func newHeader(fields [][]byte) header {
	h := make(header, len(fields))
	for i, f := range fields {
		h[i] = columnName(string(f))
	}
	return h
}

func columnName(text string) string {
	return strings.ToLower(strings.NewReplacer("#", "", " ", "", "_", "", "-", "").Replace(text))
}

// column returns the place of the first of the names that the header has, or -1.
func (h header) column(names ...string) int {
	for _, name := range names {
		if i := slices.Index(h, columnName(name)); i >= 0 {
			return i
		}
	}
	return -1
}
