package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
)

// Options are what reading a document can be told.
type Options struct {
	// Registry knows the names that the document may use. Nil: Terrace's own.
	Registry *Registry

	// Env looks up a variable. Nil: [os.LookupEnv].
	Env func(name string) (value string, set bool)

	// Set changes single fields, each as PATH=VALUE, such as
	// "products.refresh.policy=swr" or "products.tiers.l1.capacity=500". VALUE is one
	// value as YAML would have it, variables included.
	Set []string
}

// String tells how many fields are set, and not to what: that may be secret.
func (o Options) String() string { return fmt.Sprintf("config options with %d fields set", len(o.Set)) }

// GoString is String, for %#v.
func (o Options) GoString() string { return o.String() }

// Document is a document in which nothing is wrong. It does not change.
type Document struct {
	spec     documentSpec
	registry *Registry
	file     string
	warnings Faults
}

// Parse reads a document. An error is a [Faults] with all that is wrong with it. The
// name stands in faults for the file.
func Parse(name string, data []byte, o Options) (*Document, error) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	doc := &Document{registry: orBuiltIn(o.Registry), file: name}
	r := &reader{file: name, env: o.Env}
	root := r.read(data)
	d := &decoder{registry: doc.registry, faults: r.faults}
	if root != nil {
		d.overrides(root, o)
		if root.kind == mapNode {
			d.structure(root, reflect.ValueOf(&doc.spec).Elem(), "")
		} else {
			d.fault(root, "", "", thereIs(root)+`: want "caches:" with at least one cache`)
		}
		d.check(&doc.spec)
	}
	if len(d.faults) > 0 {
		d.faults.sort()
		return nil, d.faults
	}
	doc.warnings = append(warnings(doc), r.unwise...)
	doc.warnings.sort()
	return doc, nil
}

// Load is [Parse] of a file.
func Load(path string, o Options) (*Document, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return Parse(path, data, o)
}

// Names returns the names of the caches, in order.
func (d *Document) Names() []string { return sortedKeys(d.spec.Caches) }

// Warnings returns what is legal and unwise.
func (d *Document) Warnings() []Fault { return slices.Clone(d.warnings) }

// String tells what would run, one cache a line, without secrets.
func (d *Document) String() string {
	var lines []string
	for _, n := range d.Names() {
		lines = append(lines, d.spec.Caches[n].summary(n))
	}
	return strings.Join(lines, "\n")
}

// GoString is String, for %#v.
func (d *Document) GoString() string { return d.String() }
