package main

import (
	"fmt"
	"os"
	"sync/atomic"
)

// traceSource is a file that holds a trace, or a pipe or device that yields one. Opening a
// named pipe waits until somebody writes to it, so that it is left to the first Read, which
// [interruptible] need not wait for.
type traceSource struct {
	name string
	once bool                    // a pipe or device: it can be read once
	file atomic.Pointer[os.File] // nil: not open yet
}

func openTraceSource(name string) (*traceSource, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory: name the files in it", name)
	}
	s := &traceSource{name: name, once: !info.Mode().IsRegular()}
	if info.Mode()&os.ModeNamedPipe != 0 {
		return s, nil
	}
	return s, s.open()
}

func (s *traceSource) open() error {
	f, err := os.Open(s.name)
	if err == nil {
		s.file.Store(f)
	}
	return err
}

func (s *traceSource) Read(p []byte) (int, error) {
	if s.file.Load() == nil {
		if err := s.open(); err != nil {
			return 0, err
		}
	}
	return s.file.Load().Read(p)
}

// Close closes what is open.
func (s *traceSource) Close() {
	if f := s.file.Load(); f != nil {
		f.Close()
	}
}
