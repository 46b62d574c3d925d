package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/terracecache/terrace/coordinator/config"
)

// document is a file with caches.
type document struct {
	name string // for people
	data []byte
	sets []string // the --set that are about it
	*config.Document
}

// stdinName is what the document of - is called.
const stdinName = "<stdin>"

// mostDocument is more than the parser takes, and keeps a file without an end from
// filling the memory.
const mostDocument = 8 << 20

// readDocuments reads the files. It returns an error that names all that cannot be
// read, or when the context ends first.
func readDocuments(ctx context.Context, files []string, stdin io.Reader) ([]*document, error) {
	type result struct {
		documents []*document
		err       error
	}
	// Beside it: a terminal or a pipe may be waited for, and Ctrl-C must end that.
	read := make(chan result, 1)
	go func() {
		var r result
		for _, file := range files {
			d, err := readDocument(file, stdin)
			r.documents = append(r.documents, d)
			r.err = errors.Join(r.err, err)
		}
		read <- r
	}()
	select {
	case r := <-read:
		return r.documents, r.err
	case <-ctx.Done():
		return nil, errInterrupted
	}
}

func readDocument(file string, stdin io.Reader) (*document, error) {
	d := &document{name: file}
	in := stdin
	if file == "-" {
		d.name = stdinName
	} else {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	var err error
	d.data, err = io.ReadAll(io.LimitReader(in, mostDocument))
	return d, err
}

// parseDocuments parses all documents, each with those of the sets that are about its
// caches. Documents with faults are left nil; the faults are those of all documents.
func parseDocuments(documents []*document, sets []string) config.Faults {
	divide(documents, sets)
	var all config.Faults
	for _, d := range documents {
		var faults config.Faults
		parsed, err := config.Parse(d.name, d.data, config.Options{Set: d.sets})
		if errors.As(err, &faults) {
			all = append(all, faults...)
		}
		d.Document = parsed
	}
	return distinct(all)
}

// distinct leaves out what is said already, as a --set that is about several
// documents is wrong in each.
func distinct(faults config.Faults) config.Faults {
	seen := make(map[string]bool)
	return slices.DeleteFunc(faults, func(f config.Fault) bool {
		line := f.String()
		defer func() { seen[line] = true }()
		return seen[line]
	})
}

// divide gives each set to the documents that have its cache. One whose cache none
// has is given to the first, for the parser to say so, unless it may be in a document
// that cannot be read.
func divide(documents []*document, sets []string) {
	if len(documents) == 1 {
		documents[0].sets = sets
		return
	}
	var names [][]string
	allRead := true
	for _, d := range documents {
		n, err := cachesIn(d.data)
		names = append(names, n)
		allRead = allRead && err == nil
	}
	for _, set := range sets {
		name := cacheOf(set)
		given := false
		for i, d := range documents {
			if name != "" && slices.Contains(names[i], name) {
				d.sets = append(d.sets, set)
				given = true
			}
		}
		if !given && (allRead || name == "") {
			documents[0].sets = append(documents[0].sets, set)
		}
	}
}

// cacheOf returns the cache that a PATH=VALUE is about; empty where it is no such.
func cacheOf(set string) string {
	path, _, ok := strings.Cut(set, "=")
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "caches."), ".")
	if !ok {
		return ""
	}
	return name
}

// cachesIn returns the names of a document's caches, which may be wrong otherwise.
func cachesIn(data []byte) (names []string, err error) {
	defer func() {
		if recover() != nil { // of the library
			err = errors.New("not readable as YAML")
		}
	}()
	var d struct {
		Caches map[string]yaml.Node `yaml:"caches"`
	}
	err = yaml.NewDecoder(bytes.NewReader(data)).Decode(&d)
	for name := range d.Caches {
		names = append(names, name)
	}
	return names, err
}

// warning returns a warning as one line in the form of a fault's.
func warning(f config.Fault) string {
	place := config.Fault{File: f.File, Line: f.Line, Column: f.Column}
	f.File, f.Line, f.Column = "", 0, 0
	return oneLine(place.String() + "warning: " + f.String())
}
