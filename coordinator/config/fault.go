package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Fault is one thing that is wrong, or unwise, in a document.
type Fault struct {
	// File is the name that the document was given; Line and Column count from 1. Both
	// are zero where a fault has no place.
	File         string
	Line, Column int
	// Path leads to the field, such as "caches.products.tiers.l1.ttl". Empty for the
	// document as a whole.
	Path string
	// Text is the text at fault as it is written in the document, before variables are
	// put in; empty where it is none of the reader's business.
	Text string
	// Problem says what is wrong, and what is allowed.
	Problem string
	// Meant is the nearest valid name; empty where none is near.
	Meant string

	rule bool // it breaks what a JSON schema cannot say
}

// String returns the fault as one line: file:line:column: path: "text": problem.
func (f Fault) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File + ":")
	}
	if f.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", f.Line, f.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if f.Path != "" {
		b.WriteString(oneLine(f.Path) + ": ")
	}
	if f.Text != "" {
		fmt.Fprintf(&b, "%q: ", shortened(f.Text))
	}
	b.WriteString(oneLine(f.Problem))
	if f.Meant != "" {
		fmt.Fprintf(&b, "; did you mean %s?", f.Meant)
	}
	return b.String()
}

// oneLine keeps what comes from elsewhere from breaking the line, or a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// shortened keeps a line readable.
func shortened(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// Faults are all that is wrong with a document, by place. They are the error of
// [Parse].
type Faults []Fault

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// sort puts the faults into the order of the document.
func (f Faults) sort() {
	slices.SortStableFunc(f, func(a, b Fault) int {
		switch {
		case a.File != b.File:
			return strings.Compare(a.File, b.File)
		case a.Line != b.Line:
			return a.Line - b.Line
		default:
			return a.Column - b.Column
		}
	})
}
