package trace

import (
	"bytes"
	"errors"
)

// plain is a key a line.
type plain struct{ hasher }

func (p *plain) fields() Fields { return Fields{} }

func (p *plain) parse(line []byte, to *run) error {
	if bytes.IndexByte(line, ' ') >= 0 || bytes.ContainsAny(line, "\t\v\f\r") {
		return errors.New("white space inside the key: want one key a line")
	}
	return to.one(Request{Key: p.hash(line)})
}
