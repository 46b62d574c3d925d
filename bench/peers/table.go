package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
)

// writeHead says what was measured on what.
func writeHead(w io.Writer, s *settings) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s/%s, %d CPUs; median (least, most) of %d rounds of %v s, in turn\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), s.Rounds, s.Seconds)
	b.WriteString("× name: times what Terrace's row of that name takes; more than 1 is slower, or larger, than Terrace\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// writeTable writes the rows of a block, of which there is at least one, the best
// first.
func writeTable(w io.Writer, title string, rows []row) error {
	columns := columnsOf(rows)
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b row) int {
		switch x, y := a.cost(), b.cost(); {
		case x < y:
			return -1
		case x > y:
			return 1
		default:
			return 0
		}
	})
	lines := [][]string{heads(columns)}
	for _, r := range rows {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.cell(r)
		}
		lines = append(lines, cells)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", title)
	alignLeft(&b, lines, 2)
	_, err := io.WriteString(w, b.String())
	return err
}

// column is one of a table.
type column struct {
	head string
	cell func(row) string
}

// columnsOf returns the columns for which the rows have something, and one for each
// row of Terrace that others are compared with.
func columnsOf(rows []row) []column {
	columns := []column{
		{"name", func(r row) string { return r.Name }},
		{"version", func(r row) string { return short(r.Version) }},
	}
	add := func(head string, of func(row) *float64, write func(float64) string) {
		if slices.ContainsFunc(rows, func(r row) bool { return of(r) != nil }) {
			columns = append(columns, column{head, func(r row) string {
				if x := of(r); x != nil {
					return write(*x)
				}
				return "-"
			}})
		}
	}
	add("time", func(r row) *float64 { return r.NsPerOp }, nanoseconds)
	add("least", func(r row) *float64 { return r.NsMin }, nanoseconds)
	add("most", func(r row) *float64 { return r.NsMax }, nanoseconds)
	add("B/entry", func(r row) *float64 { return r.BytesPerEntry }, func(x float64) string { return fmt.Sprintf("%.0f", x) })
	for _, reference := range rows {
		if !reference.isReference() {
			continue
		}
		add("× "+strings.TrimPrefix(reference.Name, "terrace-"), func(r row) *float64 {
			ratio := r.cost() / reference.cost()
			return &ratio
		}, func(x float64) string { return fmt.Sprintf("%.2f", x) })
	}
	add("allocs", func(r row) *float64 { return r.AllocsPerOp }, func(x float64) string { return fmt.Sprintf("%.4g", x) })
	add("ops/s", func(r row) *float64 { return r.OpsPerSecond }, thousands)
	add("of alone", func(r row) *float64 { return r.Ratio }, func(x float64) string { return fmt.Sprintf("%.2f", x) })
	add("of apart", func(r row) *float64 { return r.RatioApart }, func(x float64) string { return fmt.Sprintf("%.2f", x) })
	return columns
}

// isReference reports whether other rows are compared with this one. Those beside a
// storm are compared with the one without.
func (r row) isReference() bool {
	return strings.HasPrefix(r.Name, "terrace-") && !strings.HasSuffix(r.Name, "-int") && r.Ratio == nil
}

// cost is what rows of one block are compared by.
func (r row) cost() float64 {
	if r.NsPerOp != nil {
		return *r.NsPerOp
	}
	return *r.BytesPerEntry
}

func heads(columns []column) []string {
	var heads []string
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	return heads
}

// alignLeft writes the lines with the first columns to the left and the others to the
// right.
func alignLeft(b *strings.Builder, lines [][]string, left int) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, line := range lines {
		for i, cell := range line {
			width := widths[i]
			if i < left {
				width = -width
			}
			fmt.Fprintf(b, "  %*s", width, cell)
		}
		b.WriteString("\n")
	}
}

// short leaves out of a version what only tells commits apart.
func short(version string) string {
	if parts := strings.Split(version, "-"); len(parts) == 3 {
		return parts[0] + "-" + parts[1][:min(8, len(parts[1]))]
	}
	return version
}

func nanoseconds(ns float64) string {
	switch {
	case ns >= 1e6:
		return fmt.Sprintf("%.1f ms", ns/1e6)
	case ns >= 1e4:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	case ns >= 100:
		return fmt.Sprintf("%.0f ns", ns)
	default:
		return fmt.Sprintf("%.1f ns", ns)
	}
}

func thousands(x float64) string { return fmt.Sprintf("%.0fk", x/1000) }
