package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Params are what a document tells something registered, in its field "options".
type Params struct{ n *node }

// Given reports whether there are any.
func (p Params) Given() bool { return p.n != nil }

// Decode puts the options into the struct that into points to, by its yaml tags, and
// refuses those that it has no field for. Without options it does nothing. Errors name
// the options and never show a value, which may be secret.
func (p Params) Decode(into any) error {
	if p.n == nil {
		return nil
	}
	if p.n.kind != mapNode && p.n.kind != nullNode {
		return errors.New("options: want a mapping")
	}
	data, err := yaml.Marshal(p.n.plain())
	if err != nil {
		return errors.New("options: not readable")
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	switch err := d.Decode(into); {
	case err == nil, errors.Is(err, io.EOF):
		return nil
	default:
		return fmt.Errorf("options: %s", withoutValues(err))
	}
}

// plain returns the node as Go values, as the YAML package makes them.
func (n *node) plain() any {
	switch n.kind {
	case mapNode:
		m := make(map[string]any, len(n.pairs))
		for _, p := range n.pairs {
			m[p.key] = p.value.plain()
		}
		return m
	case listNode:
		l := make([]any, len(n.items))
		for i, item := range n.items {
			l[i] = item.plain()
		}
		return l
	case textNode:
		if n.hasVariable() { // which may hold a number as well
			var v any
			if err := yaml.Unmarshal([]byte(n.text), &v); err == nil {
				switch v.(type) {
				case int, int64, uint64, float64, bool:
					return v
				}
			}
		}
		return n.text
	case boolNode:
		return strings.EqualFold(n.text, "true")
	case intNode:
		if i, ok := n.integer(); ok {
			if i.IsInt64() {
				return i.Int64()
			}
			f, _ := n.float()
			return f
		}
		return n.text
	case floatNode:
		if f, ok := n.float(); ok && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		return n.text
	default:
		return nil
	}
}

// withoutValues says what is wrong without the values that the package's errors quote.
func withoutValues(err error) string {
	var bad *yaml.TypeError
	if !errors.As(err, &bad) {
		return "not readable"
	}
	var all []string
	for _, line := range bad.Errors {
		if m := yamlLine.FindStringSubmatch(line); m != nil {
			line = m[2]
		}
		if strings.HasPrefix(line, "cannot unmarshal") {
			_, into, _ := strings.Cut(line, " into ")
			line = "a value that is no " + into
			if strings.Contains(into, "struct") || into == "" {
				line = "a value of another kind than is wanted"
			}
		}
		all = append(all, line)
	}
	return strings.Join(all, "; ")
}
