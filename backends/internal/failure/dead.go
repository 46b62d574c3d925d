package failure

import (
	"errors"
	"io"
	"syscall"
)

// IsDead reports whether the error is that of a connection which the other side had closed.
func IsDead(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}
