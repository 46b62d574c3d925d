package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/terracecache/terrace/bench/internal/page"
)

// outputFiles are where a report goes beside the table, each empty if nowhere.
type outputFiles struct {
	JSON string // a file, or "-" for stdout instead of the table
	HTML string // a file
}

// registerOutput binds them to flags.
func (o *outputFiles) registerOutput(f *pflag.FlagSet) {
	f.StringVar(&o.JSON, "json", "", "write the result as JSON to this `FILE` too; -: to stdout, instead of the table")
	f.StringVar(&o.HTML, "html", "", "write the result as a page with charts to this `FILE` too, which needs no network")
}

// validateOutput returns what is wrong with them.
func (o *outputFiles) validateOutput(f *pflag.FlagSet) error {
	for flag, empty := range map[string]bool{"json": o.JSON == "", "html": o.HTML == ""} {
		if f.Changed(flag) && empty {
			return fmt.Errorf("--%s is empty: give it a value, or leave it out", flag)
		}
	}
	if o.HTML == "-" {
		return errors.New("--html -: a page does not go to stdout: want the name of a file")
	}
	return nil
}

// output is where the report goes. Files are taken hold of before anything is
// measured, so that one that cannot be written costs nobody a run, and appear whole
// or not at all.
type output struct {
	stdout io.Writer
	table  bool // on stdout; else JSON
	json   *outputFile
	html   *outputFile
}

// outputFile is one that a flag names. Nil is one that is not asked for.
type outputFile struct {
	flag   string
	file   *os.File
	target string // file becomes this; empty where it is written in place
}

// openOutput makes the output, in none of the files that are read.
func openOutput(files outputFiles, stdout io.Writer, inputs ...string) (*output, error) {
	o := &output{stdout: stdout, table: files.JSON != "-"}
	var err error
	if o.table {
		if o.json, err = openOutputFile("--json", files.JSON, inputs...); err != nil {
			return nil, err
		}
	}
	if o.html, err = openOutputFile("--html", files.HTML, inputs...); err != nil {
		o.discard()
		return nil, err
	}
	if o.json != nil && o.html != nil && o.json.target != "" && o.json.target == o.html.target {
		o.discard()
		return nil, fmt.Errorf("--json and --html are the same file, %s", files.HTML)
	}
	return o, nil
}

func openOutputFile(flag, name string, inputs ...string) (*outputFile, error) {
	if name == "" {
		return nil, nil
	}
	for _, input := range inputs {
		if isSame(name, input) {
			return nil, fmt.Errorf("%s: %s is what is read here, and would be lost: name another file", flag, name)
		}
	}
	o := &outputFile{flag: flag}
	fail := func(err error) (*outputFile, error) {
		return nil, fmt.Errorf("%s: cannot write %s: %w", flag, name, pathless(err)) // its path may be that of the temporary file
	}
	target := filepath.Clean(name)
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

// pathless returns the error without the path that it names.
func pathless(err error) error {
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}

// isSame reports whether two names are of one file that is there, and no device.
func isSame(name, other string) bool {
	a, err := os.Stat(name)
	if err != nil || !a.Mode().IsRegular() {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}

// write writes the report, in its forms for programs and for people, and ends the
// output.
func (o *output) write(json, table func(io.Writer) error, html func() *page.Report) error {
	first := table
	if !o.table {
		first = json
	}
	if err := first(o.stdout); err != nil {
		return err
	}
	if err := o.json.write(json); err != nil {
		return err
	}
	if o.html == nil {
		return nil
	}
	return o.html.write(html().WriteHTML)
}

func (o *outputFile) write(content func(io.Writer) error) error {
	if o == nil {
		return nil
	}
	err := content(o.file)
	if closeErr := o.file.Close(); err == nil {
		err = closeErr
	}
	if err == nil && o.target != "" {
		err = os.Rename(o.file.Name(), o.target)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.flag, err)
	}
	o.file = nil
	return nil
}

// discard removes what write has not completed.
func (o *output) discard() {
	o.json.discard()
	o.html.discard()
}

func (o *outputFile) discard() {
	if o == nil || o.file == nil {
		return
	}
	o.file.Close()
	if o.target != "" {
		os.Remove(o.file.Name())
	}
}
