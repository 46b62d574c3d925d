package failure_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/terracecache/terrace/backends/internal/failure"
)

func TestSet(t *testing.T) {
	var s failure.Set
	s.Add(nil)
	if err := s.Join(); err != nil {
		t.Errorf("of none: got %v", err)
	}
	s.Add(io.EOF)
	if err := s.Join(); err != io.EOF { //nolint:errorlint // it is to be the very same
		t.Errorf("of one: got %v, want it as it is", err)
	}
	for range 1000 {
		s.Add(fmt.Errorf("read: %w", io.ErrClosedPipe))
	}
	err := s.Join()
	if !errors.Is(err, io.EOF) || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("of two kinds: got %v, want both", err)
	}
	if len(err.Error()) > 100 {
		t.Errorf("1000 errors that are alike read as %d bytes", len(err.Error()))
	}
}
