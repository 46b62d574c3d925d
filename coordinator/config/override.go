package config

import (
	"strings"
)

// overrides changes fields as [Options.Set] says.
func (d *decoder) overrides(root *node, o Options) {
	for _, set := range o.Set {
		path, value, ok := strings.Cut(set, "=")
		r := &reader{file: "--set", env: o.Env}
		if ok && masked(path) != "" {
			r.file += " " + path
		}
		at := &node{file: r.file, kind: textNode, text: masked(path), raw: masked(path)}
		if !ok || path == "" {
			// Not quoted: it may be a value, and that a secret.
			d.fault(at, "", "", "want PATH=VALUE, such as products.refresh.policy=swr")
			continue
		}
		var n *node
		if value != "" {
			n = r.read([]byte(value))
		}
		if n == nil || !n.isScalar() || len(r.faults) > 0 {
			for _, f := range r.faults {
				f.Line, f.Column = 0, 0
				d.faults = append(d.faults, f)
			}
			if len(r.faults) == 0 {
				d.fault(at, path, "", "want a single value behind the =")
			}
			continue
		}
		n.line, n.col = 0, 0
		d.override(root.child("caches"), strings.TrimPrefix(path, "caches."), at, n)
	}
}

// override puts a value where the path leads, and makes mappings on the way where there
// are none. Caches and tiers must be there.
func (d *decoder) override(n *node, path string, at, value *node) {
	for first := true; ; first = false {
		key, rest, more := n.step(path)
		next := n.child(key)
		switch {
		case n == nil || first && !more:
			d.fault(at, at.text, "", "leads nowhere: want CACHE.FIELD…, such as products.refresh.policy")
			return
		case n.kind == listNode:
			if next = tierNamed(n, key); next == nil || !more {
				d.fault(at, at.text, "", "there is no tier "+masked(key)+" of which a field could be set").Meant = nearest(key, n.names(), nil)
				return
			}
		case n.kind != mapNode:
			d.fault(at, at.text, "", "leads through what is not a mapping")
			return
		case !more:
			n.put(key, at, value)
			return
		case next == nil && first:
			d.fault(at, at.text, "", "there is no cache "+masked(key)).Meant = nearest(key, n.names(), nil)
			return
		case next == nil:
			next = &node{kind: mapNode, file: at.file}
			n.put(key, at, next)
		}
		n, path = next, rest
	}
}

// step returns the key that a path begins with, and the rest. Names of caches and tiers
// may have dots: the longest that is there counts.
func (n *node) step(path string) (key, rest string, more bool) {
	key, rest, more = strings.Cut(path, ".")
	if n == nil {
		return key, rest, more
	}
	for _, name := range n.names() {
		if after, ok := strings.CutPrefix(path, name+"."); ok && len(name) > len(key) {
			key, rest, more = name, after, true
		}
	}
	return key, rest, more
}

// names returns the keys of a mapping, or the names of a list's tiers.
func (n *node) names() []string {
	var names []string
	for _, p := range n.pairs {
		names = append(names, p.key)
	}
	for _, item := range n.items {
		if c := item.child("name"); c != nil {
			names = append(names, c.text)
		}
	}
	return names
}

// put sets a key of a mapping.
func (n *node) put(key string, at, value *node) {
	for i := range n.pairs {
		if n.pairs[i].key == key {
			n.pairs[i].value = value
			return
		}
	}
	n.pairs = append(n.pairs, pair{key, at, value})
}

func tierNamed(list *node, name string) *node {
	for _, item := range list.items {
		if c := item.child("name"); c != nil && c.text == name {
			return item
		}
	}
	return nil
}
