package config

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// shape says how a single value may be written. The parser goes by it, and the JSON
// schema is made of it, so both take and refuse the same.
type shape struct {
	text    string      // a regular expression for text, in the part of the syntax that Go and ECMA share; empty: no text
	textNot string      // another, for what is no such text all the same
	enum    []string    // the texts allowed, in place of an expression
	integer *[2]int64   // from, to
	number  *[2]float64 // from, to
	open    [2]bool     // which end of number is not in it
	want    string      // all of it in words, with an example
}

var compiled = make(map[string]*regexp.Regexp)

// pattern registers an expression at start, so that a mistake in one is met at once.
func pattern(expression string) string {
	compiled[expression] = regexp.MustCompile(expression)
	return expression
}

// takes reports whether the node is written as the shape wants.
func (s shape) takes(n *node) bool {
	switch n.kind {
	case textNode:
		if s.enum != nil {
			return slices.Contains(s.enum, n.text)
		}
		return s.text != "" && compiled[s.text].MatchString(n.text) && (s.textNot == "" || !compiled[s.textNot].MatchString(n.text))
	case intNode, floatNode: // 1e3 is a whole number too
		if i, ok := n.integer(); ok && s.integer != nil && i.Cmp(big.NewInt(s.integer[0])) >= 0 && i.Cmp(big.NewInt(s.integer[1])) <= 0 {
			return true
		}
		return s.takesNumber(n)
	default:
		return false
	}
}

func (s shape) takesNumber(n *node) bool {
	f, ok := n.float()
	if !ok || s.number == nil || s.open[0] && f == s.number[0] || s.open[1] && f == s.number[1] {
		return false
	}
	return f >= s.number[0] && f <= s.number[1]
}

// refusal says what is wrong with a node that the shape does not take.
func (s shape) refusal(n *node) string {
	switch {
	case n.kind == nullNode:
		return "there is nothing here: want " + s.want
	case !n.isScalar():
		return n.kind.String() + ": want " + s.want
	case n.kind == textNode && strings.ContainsFunc(n.text, unicode.IsControl):
		return "it holds a line break or another control character: want " + s.want
	case n.kind == textNode && n.text == "":
		return "there is nothing here: want " + s.want
	case n.kind == textNode && s.textNot != "" && compiled[s.textNot].MatchString(n.text):
		return "zero makes no sense here: want more, or leave the field out"
	case n.kind == textNode && s.isUnit() && bareNumber.MatchString(n.text):
		return "a bare number: want " + s.want
	case s.integer == nil && s.number == nil && (n.kind == intNode || n.kind == floatNode):
		if s.isUnit() {
			return "a bare number: want " + s.want
		}
		return "a number: want " + s.want + ", in quotes if it looks like a number"
	case n.kind == boolNode:
		return "YAML takes this for true or false: want " + s.want + ", in quotes if that is what it is"
	}
	return "want " + s.want
}

var bareNumber = regexp.MustCompile(`^[+-]?[0-9][0-9_]*(\.[0-9]+)?(e[0-9]+)?$`)

// isUnit reports whether a number needs a unit here.
func (s shape) isUnit() bool {
	return s.text == durationPattern || s.text == durationOrForever || s.text == sizePattern
}

// schema returns the JSON schema of the shape. A lenient one takes what holds a
// variable, of which an editor does not know what it will be.
func (s shape) schema(lenient bool) map[string]any {
	var any []object
	switch {
	case s.enum != nil:
		any = append(any, object{"enum": s.enum})
	case s.textNot != "":
		any = append(any, object{"type": "string", "pattern": s.text, "not": object{"pattern": s.textNot}})
	case s.text != "":
		any = append(any, object{"type": "string", "pattern": s.text})
	}
	if s.integer != nil {
		any = append(any, object{"type": "integer", "minimum": s.integer[0], "maximum": s.integer[1]})
	}
	if s.number != nil {
		least, most := "minimum", "maximum"
		if s.open[0] {
			least = "exclusiveMinimum"
		}
		if s.open[1] {
			most = "exclusiveMaximum"
		}
		any = append(any, object{"type": "number", least: s.number[0], most: s.number[1]})
	}
	if lenient {
		any = append(any, object{"type": "string", "pattern": `\$\{`})
	}
	if len(any) == 1 {
		return any[0]
	}
	return object{"anyOf": any}
}

type object = map[string]any

func oneOf(names []string) string {
	switch len(names) {
	case 0:
		return "nothing, as none is registered"
	case 1:
		return names[0]
	}
	return fmt.Sprintf("%s or %s", strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
}
