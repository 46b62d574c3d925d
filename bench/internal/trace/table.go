package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// table is CSV whose header names the columns, in any order, with any others among them.
type table struct {
	hasher
	separated
	// begin finds the columns in the header.
	begin func(header) (columnsOf, error)
	// operation reads the name of one.
	operation func([]byte) (Op, error)
	times     bool   // are asked for
	width     int    // columns
	header    []byte // as it is written; nil: no row can be meant to be it
	columnsOf
}

// columnsOf are the places of columns that matter, or -1.
type columnsOf struct {
	key, op, count, at int
	sizes              [2]sizeColumn // of an object together
}

// sizeColumn is a column of bytes.
type sizeColumn struct {
	at   int
	name string
}

// newTable reads the header, without which no line can be read. A trace of nothing at all
// has none.
func newTable(s *source, t *table) (*lines, error) {
	head := s.beginning()
	_, t.by = firstFields(head)
	l := newLines(s, t)
	for {
		line, err := l.line()
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		line = t.trim(line)
		fields, err := t.split(line)
		if err == nil {
			if t.width = len(fields); t.width > 1 {
				t.header = bytes.Clone(line)
			}
			t.columnsOf, err = t.begin(newHeader(fields))
		}
		if err != nil {
			return nil, l.malformed(err)
		}
		return l, nil
	}
}

func (t *table) fields() Fields {
	if t.width == 0 {
		return Fields{} // of no line at all
	}
	return Fields{Sizes: t.sizes[0].at >= 0, Ops: t.op >= 0, Times: t.at >= 0}
}

func (t *table) parse(line []byte, to *run) error {
	if t.header != nil && bytes.Equal(bytes.TrimPrefix(line, byteOrderMark), t.header) {
		return nil // of another file behind the first
	}
	f, err := t.split(line)
	if err != nil {
		return err
	}
	if f = fit(f, t.width); len(f) != t.width {
		return wantFields(len(f), fmt.Sprintf("the header's %d", t.width))
	}
	if len(f[t.key]) == 0 {
		return errors.New("no key")
	}
	q := Request{Key: t.hash(f[t.key])}
	for _, column := range t.sizes {
		if t.sizes[0].at < 0 || column.at < 0 {
			continue
		}
		n, err := size(f[column.at], column.name)
		if err != nil {
			return err
		}
		q.Size += n
	}
	if t.times && t.at >= 0 {
		if q.Time, err = instant(f[t.at]); err != nil {
			return err
		}
	}
	if t.op >= 0 {
		if q.Op, err = t.operation(f[t.op]); err != nil {
			return err
		}
	}
	count := uint64(1)
	if t.count >= 0 {
		if count, err = repeats(f[t.count], "op_count"); err != nil {
			return err
		}
	}
	to.Request, to.left, to.stride = q, count, 0
	return nil
}
