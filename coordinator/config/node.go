package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// node is a part of a document: YAML with what was written once put wherever it is
// used (aliases, merges), and variables put in. It knows its place.
type node struct {
	kind  nodeKind
	file  string
	line  int
	col   int
	raw   string // of a scalar: as written
	text  string // of a scalar: with variables put in
	items []*node
	pairs []pair
}

type pair struct {
	key   string
	at    *node // the key's place
	value *node
}

type nodeKind uint8

const (
	nullNode nodeKind = iota
	textNode
	intNode
	floatNode
	boolNode
	listNode
	mapNode
)

// String names the kind for people.
func (k nodeKind) String() string {
	return [...]string{"nothing", "text", "a number", "a number", "true or false", "a list", "a mapping"}[k]
}

// isScalar reports whether the node is a single value.
func (n *node) isScalar() bool { return n.kind != listNode && n.kind != mapNode }

// child returns the value under a key of a mapping, or nil.
func (n *node) child(key string) *node {
	if n == nil {
		return nil
	}
	for _, p := range n.pairs {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// Bounds against documents that are small to write and huge to read.
const (
	maxDocument = 4 << 20 // bytes
	maxNodes    = 200_000 // after aliases are followed
	maxDepth    = 100
)

// reader makes nodes of YAML.
type reader struct {
	file   string
	env    func(string) (string, bool)
	faults Faults
	unwise Faults
	nodes  int
	open   map[*yaml.Node]bool // anchors that are being followed
}

var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// read returns the document's root, or nil if it is not YAML at all.
func (r *reader) read(data []byte) (root *node) {
	if len(data) > maxDocument {
		r.faultAt(0, 0, "", "", fmt.Sprintf("the document is larger than %d MiB", maxDocument>>20))
		return nil
	}
	defer func() {
		if p := recover(); p != nil { // of the library
			r.faultAt(1, 1, "", "", "not readable as YAML")
			root = nil
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(data))
	var y, second yaml.Node
	switch err := d.Decode(&y); {
	case errors.Is(err, io.EOF):
		r.faultAt(1, 1, "", "", `the document is empty: want "caches:" with at least one cache`)
		return nil
	case err != nil:
		r.yamlFault(err, data)
		return nil
	}
	if err := d.Decode(&second); err == nil {
		r.faultAt(second.Line, max(1, second.Column), "", "", "a second YAML document in one file: want one")
	} else if !errors.Is(err, io.EOF) {
		r.yamlFault(err, data)
		return nil
	}
	r.open = make(map[*yaml.Node]bool)
	return r.node(&y, "", 0)
}

// yamlFault notes that the document is no YAML. The library tells the line where what
// it was reading began, if any: the first line that is in the way is looked for.
func (r *reader) yamlFault(err error, data []byte) {
	line, problem := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(problem); m != nil {
		line, _ = strconv.Atoi(m[1])
		problem = m[2]
	}
	problem = "not readable as YAML: " + withoutQuotes(problem)
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i, l := range lines {
		if at := bareVariable.FindIndex(l); at != nil {
			r.faultAt(i+1, at[1]-1, "", "", problem+`; inside of { } or [ ] a variable is written in quotes: "${NAME}"`)
			return
		}
	}
	if n := readableLines(lines); n >= 0 {
		line = n + 1
	}
	r.faultAt(max(1, line), 1, "", "", problem)
}

// bareVariable is a variable without quotes where a brace has a meaning of its own.
var bareVariable = regexp.MustCompile(`[\[{,](\s*[A-Za-z_]+:)?\s*\$\{`)

// readableLines returns how many lines from the top are YAML by themselves; -1 where
// there are too many to try.
func readableLines(lines [][]byte) int {
	const most = 500
	if len(lines) > most {
		return -1
	}
	for n := len(lines) - 1; n > 0; n-- {
		var y yaml.Node
		if err := yaml.Unmarshal(bytes.Join(lines[:n], nil), &y); err == nil {
			return n
		}
	}
	return 0
}

func (r *reader) faultAt(line, col int, path, text, problem string) {
	r.faults = append(r.faults, Fault{File: r.file, Line: line, Column: col, Path: path, Text: text, Problem: problem})
}

// node makes the node of a part. It never returns nil: what cannot be read is null.
func (r *reader) node(y *yaml.Node, path string, depth int) *node {
	n := &node{file: r.file, line: y.Line, col: y.Column}
	if r.nodes++; r.nodes > maxNodes || depth > maxDepth {
		if r.nodes <= maxNodes+1 { // once
			r.nodes = maxNodes + 1
			r.faultAt(y.Line, y.Column, path, "", "the document is too large or too deep once its aliases are followed")
		}
		return n
	}
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) == 0 {
			return n
		}
		return r.node(y.Content[0], path, depth+1)
	case yaml.AliasNode:
		if y.Alias == nil || r.open[y.Alias] {
			r.faultAt(y.Line, y.Column, path, "", "an alias inside of what it stands for")
			return n
		}
		r.open[y.Alias] = true
		n := r.node(y.Alias, path, depth+1)
		delete(r.open, y.Alias)
		return n
	case yaml.SequenceNode:
		n.kind = listNode
		for i, item := range y.Content {
			n.items = append(n.items, r.node(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case yaml.MappingNode:
		n.kind = mapNode
		r.mapping(n, y, path, depth)
	case yaml.ScalarNode:
		r.scalar(n, y, path)
	}
	return n
}

// mapping reads the pairs. A key that is there twice is a fault; what a merge brings
// gives way to what is written.
func (r *reader) mapping(n *node, y *yaml.Node, path string, depth int) {
	seen := make(map[string]*node)
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		at := &node{file: r.file, line: k.Line, col: k.Column, kind: textNode, raw: k.Value, text: k.Value}
		if k.Kind != yaml.ScalarNode {
			r.faultAt(k.Line, k.Column, path, "", "a key that is not a single word")
			continue
		}
		if k.Tag == "!!merge" {
			merged = append(merged, r.merge(v, path, depth)...)
			continue
		}
		if first := seen[k.Value]; first != nil {
			r.faultAt(k.Line, k.Column, joinPath(path, orHidden(masked(k.Value))), masked(k.Value), fmt.Sprintf("there already, in line %d: want each field once", first.line))
			continue
		}
		seen[k.Value] = at
		n.pairs = append(n.pairs, pair{k.Value, at, r.node(v, joinPath(path, orHidden(masked(k.Value))), depth+1)})
	}
	for _, m := range merged {
		for _, p := range m.pairs {
			if seen[p.key] == nil {
				seen[p.key] = p.at
				n.pairs = append(n.pairs, p)
			}
		}
	}
}

// merge returns the mappings that a merge key names, the first of which wins.
func (r *reader) merge(v *yaml.Node, path string, depth int) []*node {
	m := r.node(v, path, depth+1)
	all := []*node{m}
	if m.kind == listNode {
		all = m.items
	}
	for _, n := range all {
		if n.kind != mapNode {
			r.faultAt(v.Line, v.Column, path, "<<", "merges what is no mapping")
			return nil
		}
	}
	return all
}

func (r *reader) scalar(n *node, y *yaml.Node, path string) {
	n.raw, n.text = y.Value, y.Value
	switch tag := y.ShortTag(); tag {
	case "!!null":
		return
	case "!!int":
		n.kind = intNode
		if otherBase.MatchString(y.Value) {
			r.faultAt(y.Line, y.Column, path, y.Value, "YAML takes this for another number than it reads like: write it in decimal, without a zero in front")
			n.fail()
		}
	case "!!float":
		n.kind = floatNode
	case "!!bool":
		n.kind = boolNode
	case "!!str", "!!timestamp":
		n.kind = textNode
		text, problem := expand(y.Value, r.env)
		if problem != "" {
			r.faultAt(y.Line, y.Column, path, masked(y.Value), problem)
			n.fail()
			return
		}
		n.text = text
		if withoutBraces.MatchString(y.Value) {
			r.unwise = append(r.unwise, Fault{
				File: r.file, Line: y.Line, Column: y.Column, Path: path, Text: y.Value,
				Problem: "taken as it stands: a variable is written ${" + y.Value[1:] + "}, and $$" + y.Value[1:] + " says that none is meant",
			})
		}
	default:
		r.faultAt(y.Line, y.Column, path, "", "a YAML tag that means nothing here: "+tag)
		n.fail()
	}
}

// otherBase is a number that is octal, hexadecimal or binary.
var otherBase = regexp.MustCompile(`^[+-]?0[0-9_xXoObB]`)

// fail marks a node of which nothing more can be said.
func (n *node) fail() { n.kind, n.text, n.raw = nullNode, "", "\x00" }

// failed reports whether the node was at fault already.
func (n *node) failed() bool { return n.kind == nullNode && n.raw == "\x00" }

// hasVariable reports whether the text is not what is written.
func (n *node) hasVariable() bool { return n.raw != n.text }

// integer returns the number of an intNode, or of a floatNode that is a whole one.
func (n *node) integer() (*big.Int, bool) {
	if n.kind == floatNode {
		f, ok := n.float()
		if !ok || math.IsInf(f, 0) || f != math.Trunc(f) { // so written, NaN fails
			return nil, false
		}
		i, _ := big.NewFloat(f).Int(nil)
		return i, true
	}
	text := strings.TrimPrefix(strings.ReplaceAll(n.text, "_", ""), "+")
	return new(big.Int).SetString(text, 0)
}

// float returns the number of an intNode or a floatNode.
func (n *node) float() (float64, bool) {
	if n.kind == intNode {
		i, ok := n.integer()
		if !ok {
			return 0, false
		}
		f, _ := new(big.Float).SetInt(i).Float64()
		return f, true
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64)
	return f, err == nil
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
