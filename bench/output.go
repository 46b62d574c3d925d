package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// output is where the report goes. A file is taken hold of before anything is
// measured, so that one that cannot be written costs nobody a run, and appears whole
// or not at all.
type output struct {
	stdout io.Writer
	json   bool
	file   *os.File // nil: stdout
	target string   // file becomes this; empty where it is written in place
}

// openOutput makes the output for --json's argument; empty: the table on stdout.
func openOutput(name string, stdout io.Writer) (*output, error) {
	o := &output{stdout: stdout, json: name != ""}
	if name == "" || name == "-" {
		return o, nil
	}
	fail := func(err error) (*output, error) {
		if path := (*os.PathError)(nil); errors.As(err, &path) {
			err = path.Err // its path may be that of the temporary file
		}
		return nil, fmt.Errorf("--json: cannot write %s: %w", name, err)
	}
	target := name
	if real, err := filepath.EvalSymlinks(name); err == nil {
		target = real
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(target); err == nil {
		existing, err := os.OpenFile(target, os.O_WRONLY, 0) // fails for a directory or without permission
		if err != nil {
			return fail(err)
		}
		if !info.Mode().IsRegular() { // a device or a pipe, which must not be replaced
			o.file = existing
			return o, nil
		}
		existing.Close()
		mode = info.Mode().Perm()
	}
	file, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return fail(err)
	}
	o.file, o.target = file, target
	if err := file.Chmod(mode); err != nil {
		o.discard()
		return fail(err)
	}
	return o, nil
}

// write writes the report, in its forms for programs and for people, and ends the output.
func (o *output) write(json, table func(io.Writer) error) error {
	if o.json && o.file == nil {
		return json(o.stdout)
	}
	if err := table(o.stdout); err != nil || o.file == nil {
		return err
	}
	err := json(o.file)
	if closeErr := o.file.Close(); err == nil {
		err = closeErr
	}
	if err == nil && o.target != "" {
		err = os.Rename(o.file.Name(), o.target)
	}
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	o.file = nil
	return nil
}

// discard removes what write has not completed.
func (o *output) discard() {
	if o.file == nil {
		return
	}
	o.file.Close()
	if o.target != "" {
		os.Remove(o.file.Name())
	}
}
