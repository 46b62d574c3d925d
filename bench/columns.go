package main

import (
	"fmt"
	"io"
	"strings"
)

// columnOf is a column of a table of rows.
type columnOf[R any] struct {
	name  string
	width int // below zero: a text, to the left
	cell  func(r *R) string
}

// writeColumns writes a table, with a head.
func writeColumns[R any](w io.Writer, columns []columnOf[R], rows []R) {
	line := func(cell func(c columnOf[R]) string) {
		var cells []string
		for _, c := range columns {
			cells = append(cells, fmt.Sprintf("%*s", c.width, cell(c)))
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, " "), " "))
	}
	line(func(c columnOf[R]) string { return c.name })
	for i := range rows {
		line(func(c columnOf[R]) string { return c.cell(&rows[i]) })
	}
}
