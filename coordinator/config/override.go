package config

import (
	"strings"
)

// overrides changes fields as [Options.Set] says.
func (d *decoder) overrides(root *node, o Options) {
	for _, set := range o.Set {
		r := &reader{file: "--set " + setPath(set), env: o.Env}
		path, value, ok := strings.Cut(set, "=")
		at := &node{file: r.file, kind: textNode, text: path, raw: path}
		if !ok || path == "" {
			d.fault(at, "", set, "want PATH=VALUE, such as products.refresh.policy=swr")
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
		keys := strings.Split(path, ".")
		if keys[0] == "caches" {
			keys = keys[1:]
		}
		d.override(root.child("caches"), keys, at, n)
	}
}

func setPath(set string) string {
	path, _, _ := strings.Cut(set, "=")
	return path
}

// override puts a value where the keys lead, and makes mappings on the way where there
// are none. Caches and tiers must be there.
func (d *decoder) override(n *node, keys []string, at, value *node) {
	for i, key := range keys {
		if n == nil || len(keys) < 2 {
			d.fault(at, at.text, "", "leads nowhere: want CACHE.FIELD…, such as products.refresh.policy")
			return
		}
		last := i == len(keys)-1
		if n.kind == listNode {
			next := tierNamed(n, key)
			if next == nil || last {
				d.fault(at, at.text, "", "there is no tier "+key+" of which a field could be set")
				return
			}
			n = next
			continue
		}
		if n.kind != mapNode {
			d.fault(at, at.text, "", "leads through what is not a mapping: "+strings.Join(keys[:i], "."))
			return
		}
		next := n.child(key)
		switch {
		case last:
			n.put(key, at, value)
		case next != nil:
			n = next
		case i == 0:
			d.fault(at, at.text, "", "there is no cache "+key)
			return
		default:
			next = &node{kind: mapNode, file: at.file}
			n.put(key, at, next)
			n = next
		}
	}
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
