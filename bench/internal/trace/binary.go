package trace

import (
	"errors"
	"fmt"
	"io"
)

// binary is the decoder of formats whose records all have one width, in bytes.
type binary struct {
	*source
	width  int
	decode func(record []byte, to *Request) error
	of     Fields
	number int64
}

func (b *binary) fields() Fields { return b.of }

func (b *binary) next(to *Request) error {
	b.number++
	record, err := b.Peek(b.width)
	if err == nil {
		if err = b.decode(record, to); err != nil {
			err = &Malformed{Number: b.number, Record: true, Why: err.Error()}
		}
		_, _ = b.Discard(b.width) // they are there
		return err
	}
	if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Broken{err}
	}
	if len(record) == 0 {
		return io.EOF
	}
	had := len(record)
	_, _ = b.Discard(had)
	return &Malformed{Number: b.number, Record: true, Why: fmt.Sprintf("the trace ends after %d of its %d bytes", had, b.width)}
}
