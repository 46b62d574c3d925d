package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// decoder fills the types of document.go from nodes, and collects what is wrong.
type decoder struct {
	registry *Registry
	faults   Faults
}

// fault notes what is wrong with a node.
func (d *decoder) fault(n *node, path, text, problem string) *Fault {
	d.faults = append(d.faults, Fault{File: n.file, Line: n.line, Column: n.col, Path: path, Text: text, Problem: problem})
	return &d.faults[len(d.faults)-1]
}

// shown returns the text of a node as faults may show it: never what a variable holds,
// nor a secret.
func (f *field) shown(n *node) string {
	switch {
	case !n.isScalar():
		return ""
	case f.secret:
		return variablesOf(n.raw)
	default:
		return masked(n.raw)
	}
}

var shorthand = map[reflect.Type]string{reflect.TypeFor[compressionSpec](): "algorithm", reflect.TypeFor[leaseSpec](): "life", reflect.TypeFor[busSpec](): "kind"}

// structure fills a struct of the document from a mapping.
func (d *decoder) structure(n *node, into reflect.Value, path string) {
	into.Addr().Interface().(interface{ place(*node) }).place(n)
	fields := fieldsOf(into.Type())
	if short := shorthand[into.Type()]; short != "" && n.isScalar() && n.kind != nullNode {
		at := slices.IndexFunc(fields, func(f field) bool { return f.key == short })
		d.value(n, into.Field(fields[at].index), &fields[at], path)
		return
	}
	if n.kind != mapNode {
		if !n.failed() {
			d.fault(n, path, "", fmt.Sprintf("%s: want a mapping with %s", thereIs(n), strings.Join(keysOf(fields), ", ")))
		}
		return
	}
	backend, known := "", true
	if into.Type() == reflect.TypeFor[tierSpec]() {
		backend, known = d.backendOf(n)
	}
	for _, p := range n.pairs {
		at := slices.IndexFunc(fields, func(f field) bool { return f.key == p.key })
		if at < 0 {
			if path == "" && strings.HasPrefix(p.key, "x-") {
				continue // a place for anchors
			}
			keys := d.keysFor(fields, backend, known)
			meant := nearest(p.key, keys, also)
			if !slices.Contains(keys, meant) {
				meant = ""
			}
			text := masked(p.key)
			if meant == "" && into.Type() == reflect.TypeFor[encryptionSpec]() {
				text = "" // it may be the key itself
			}
			d.fault(p.at, joinPath(path, orHidden(text)), text, "no such field here: want one of "+strings.Join(keys, ", ")).Meant = meant
			continue
		}
		f := &fields[at]
		if backend != "" && known && !f.belongs(backend, d.registry) {
			d.fault(p.at, joinPath(path, p.key), p.key, fmt.Sprintf("a tier with the backend %s has no such field: want one of %s", backend, strings.Join(d.keysFor(fields, backend, known), ", ")))
			continue
		}
		d.value(p.value, into.Field(f.index), f, joinPath(path, p.key))
	}
	if into.Type() == reflect.TypeFor[encryptionSpec]() {
		switch one, many := n.child("key") != nil, n.child("keys") != nil; {
		case one && many:
			d.fault(n, path, "", "both key and keys are there: want one of them")
		case !one && !many:
			d.fault(n, path, "", "a key is missing: want key, or keys for rotation")
		}
	}
	for _, f := range fields {
		if f.must && n.child(f.key) == nil && (f.backends == nil || backend != "" && known && f.belongs(backend, d.registry)) {
			d.fault(n, joinPath(path, f.key), "", "is missing: "+lowerFirst(f.doc))
		}
	}
}

// backendOf returns a tier's backend, and whether there is such a one.
func (d *decoder) backendOf(n *node) (backend string, known bool) {
	b := n.child("backend")
	if b == nil || b.kind != textNode {
		return "", false
	}
	return b.text, slices.Contains(d.registry.backendNames(), b.text)
}

func (d *decoder) keysFor(fields []field, backend string, known bool) []string {
	var keys []string
	for _, f := range fields {
		if backend == "" || !known || f.belongs(backend, d.registry) {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// value fills one field.
func (d *decoder) value(n *node, into reflect.Value, f *field, path string) {
	if n.failed() {
		return
	}
	if s, ok := into.Addr().Interface().(scalar); ok {
		d.scalar(n, s, f, path)
		return
	}
	switch into.Type() {
	case reflect.TypeFor[*node]():
		into.Set(reflect.ValueOf(n))
		return
	case reflect.TypeFor[map[string]*cacheSpec]():
		d.caches(n, into.Addr().Interface().(*map[string]*cacheSpec), path)
		return
	}
	if into.Kind() == reflect.Slice {
		d.list(n, into, f, path)
		return
	}
	d.structure(n, into, path)
}

func (d *decoder) scalar(n *node, s scalar, f *field, path string) {
	shape := s.shape(f, d.registry)
	if !shape.takes(n) {
		fault := d.fault(n, path, f.shown(n), shape.refusal(n))
		if shape.enum != nil && n.kind == textNode && !n.hasVariable() {
			fault.Meant = nearest(n.text, shape.enum, map[string]string{"none": "none", "twoqueue": "2q", "stalewhilerevalidate": "swr"})
			if !slices.Contains(shape.enum, fault.Meant) {
				fault.Meant = ""
			}
		}
		return
	}
	s.set(n, f)
}

// list fills a field that holds several of a kind.
func (d *decoder) list(n *node, into reflect.Value, f *field, path string) {
	if n.kind != listNode {
		d.fault(n, path, f.shown(n), thereIs(n)+": want a list")
		return
	}
	if len(n.items) == 0 {
		d.fault(n, path, "", "an empty list: want at least one")
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if called := item.child("name"); called != nil && compiled[namePattern].MatchString(called.text) {
			at = joinPath(path, called.text)
		}
		d.value(item, into.Index(i), f, at)
	}
}

func (d *decoder) caches(n *node, into *map[string]*cacheSpec, path string) {
	if n.kind != mapNode || len(n.pairs) == 0 {
		if !n.failed() {
			d.fault(n, path, "", thereIs(n)+": want a mapping with at least one cache under its name")
		}
		return
	}
	*into = make(map[string]*cacheSpec)
	for _, p := range n.pairs {
		if !compiled[namePattern].MatchString(p.key) {
			d.fault(p.at, joinPath(path, orHidden(masked(p.key))), masked(p.key), "not a name of letters, digits, _ . and -, which begins with a letter")
			continue
		}
		c := new(cacheSpec)
		(*into)[p.key] = c
		d.structure(p.value, reflect.ValueOf(c).Elem(), joinPath(path, p.key))
		if c.at == nil || c.at.kind != mapNode {
			delete(*into, p.key)
			continue
		}
	}
}

// thereIs says what a node is, in the place of something else.
func thereIs(n *node) string {
	if n.kind == nullNode {
		return "there is nothing here"
	}
	return n.kind.String()
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
