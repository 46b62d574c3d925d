package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// output is where the rows go: tables to stdout as they come, JSON at the end. A file
// for it is taken hold of before anything is measured, so that one that cannot be
// written costs nobody a run.
type output struct {
	stdout io.Writer
	tables bool
	json   bool
	file   *os.File // nil: stdout
	target string   // file becomes this
	rows   []row
}

// openOutput makes the output for --json's argument.
func openOutput(name string, stdout io.Writer) (*output, error) {
	o := &output{stdout: stdout, tables: name != "-", json: name != ""}
	if name == "" || name == "-" {
		return o, nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("--json: %s is no file", name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		if path := (*os.PathError)(nil); errors.As(err, &path) {
			err = path.Err // its path is that of the temporary file
		}
		return nil, fmt.Errorf("--json: cannot write %s: %w", name, err)
	}
	o.file, o.target = file, name
	return o, nil
}

// begin writes what stands above the tables.
func (o *output) begin(s *settings) error {
	if !o.tables {
		return nil
	}
	return writeHead(o.stdout, s)
}

// add takes the rows of a block.
func (o *output) add(b block, rows []row) error {
	o.rows = append(o.rows, rows...)
	if !o.tables {
		return nil
	}
	return writeTable(o.stdout, b.title(), rows)
}

// end writes the JSON.
func (o *output) end() error {
	switch {
	case !o.json:
		return nil
	case o.file == nil:
		return writeJSON(o.stdout, o.rows)
	}
	err := errors.Join(writeJSON(o.file, o.rows), o.file.Chmod(0o644), o.file.Close())
	if err == nil {
		err = os.Rename(o.file.Name(), o.target)
	}
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	o.file = nil
	return nil
}

// discard removes what end has not completed.
func (o *output) discard() {
	if o.file != nil {
		_ = o.file.Close()
		_ = os.Remove(o.file.Name())
	}
}
