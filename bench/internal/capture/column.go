package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	cell  = 8       // bytes of a number
	chunk = 8 << 10 // numbers that are read or written at a time
)

// column is numbers in a temporary file, which is gone when the process ends, however it
// does, where the system lets an open file be removed.
type column struct {
	file *os.File
	name string // of the file; empty: it is removed already
	n    int64  // numbers, those in pending included
	// pending is what is not written yet.
	pending []byte
}

func newColumn(dir string) (*column, error) {
	f, err := os.CreateTemp(dir, "terrace-trace-*")
	if err != nil {
		return nil, err
	}
	c := &column{file: f, name: f.Name(), pending: make([]byte, 0, cell*chunk)}
	if os.Remove(c.name) == nil {
		c.name = ""
	}
	return c, nil
}

// add appends a number.
func (c *column) add(v uint64) error {
	c.pending = binary.LittleEndian.AppendUint64(c.pending, v)
	c.n++
	if len(c.pending) == cap(c.pending) {
		return c.flush()
	}
	return nil
}

func (c *column) flush() error {
	_, err := c.file.Write(c.pending)
	c.pending = c.pending[:0]
	if err != nil {
		return fmt.Errorf("temporary file: %w", err)
	}
	return nil
}

// read returns the numbers from the given one on, as many as the window takes or there
// are. The column is flushed. It may be called concurrently, each with its own window.
func (c *column) read(from int64, w *window) ([]uint64, error) {
	n := int(min(chunk, c.n-from))
	b := w.bytes[:n*cell]
	if _, err := c.file.ReadAt(b, from*cell); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("temporary file: %w", err)
	}
	for i := range n {
		w.numbers[i] = binary.LittleEndian.Uint64(b[i*cell:])
	}
	return w.numbers[:n], nil
}

// write puts numbers at the given place.
func (c *column) write(from int64, numbers []uint64, w *window) error {
	b := w.bytes[:len(numbers)*cell]
	for i, v := range numbers {
		binary.LittleEndian.PutUint64(b[i*cell:], v)
	}
	if _, err := c.file.WriteAt(b, from*cell); err != nil {
		return fmt.Errorf("temporary file: %w", err)
	}
	return nil
}

func (c *column) close() {
	if c == nil {
		return
	}
	c.file.Close()
	if c.name != "" {
		os.Remove(c.name)
	}
}

// window is room for a chunk.
type window struct {
	bytes   [cell * chunk]byte
	numbers [chunk]uint64
}
