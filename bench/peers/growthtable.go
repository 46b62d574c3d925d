package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// writeGrowth writes the rows of a chart as a table: a line for each name, a column
// for each step.
func writeGrowth(w io.Writer, c chart, rows []row, markdown bool) error {
	xs := xsOf(rows)
	head := []string{c.xTitle}
	for _, x := range xs {
		head = append(head, c.x(x))
	}
	lines := [][]string{head}
	for _, name := range namesOf(rows) {
		line := []string{name}
		for _, x := range xs {
			cell := "-"
			for _, r := range rows {
				if r.Name == name && *r.X == x {
					cell = r.spread()
				}
			}
			line = append(line, cell)
		}
		lines = append(lines, line)
	}
	var b strings.Builder
	if markdown {
		b.WriteString("\n")
		for i, line := range lines {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
			if i == 0 {
				fmt.Fprintf(&b, "|---|%s\n", strings.Repeat("---:|", len(xs)))
			}
		}
	} else {
		fmt.Fprintf(&b, "\n%s: %s\n", c.group, c.title)
		alignLeft(&b, lines, 1)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// spread is the median with the least and the most.
func (r row) spread() string {
	median, unit := scaled(*r.NsPerOp)
	factor := *r.NsPerOp / median
	digits := func(x float64) string {
		if x >= 99.95 {
			return fmt.Sprintf("%.0f", x)
		}
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%s %s (%s–%s)", digits(median), unit, digits(*r.NsMin/factor), digits(*r.NsMax/factor))
}

func scaled(ns float64) (float64, string) {
	switch {
	case ns >= 1e6:
		return ns / 1e6, "ms"
	case ns >= 1e4:
		return ns / 1e3, "µs"
	default:
		return ns, "ns"
	}
}

// xsOf returns the steps, in order.
func xsOf(rows []row) []float64 {
	var xs []float64
	for _, r := range rows {
		xs = append(xs, *r.X)
	}
	slices.Sort(xs)
	return slices.Compact(xs)
}

// namesOf returns the names as they first come.
func namesOf(rows []row) []string {
	var names []string
	for _, r := range rows {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}

// readRows reads what --json has written.
func readRows(name string) ([]row, error) {
	encoded, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var rows []row
	if err := json.Unmarshal(encoded, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rows, nil
}

// count writes a number of things.
func count(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%gM", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%gk", n/1e3)
	default:
		return fmt.Sprint(n)
	}
}

// size writes a number of bytes.
func size(n float64) string {
	if n >= 1<<10 {
		return fmt.Sprintf("%g KiB", n/(1<<10))
	}
	return fmt.Sprintf("%g B", n)
}
