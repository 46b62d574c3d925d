package page

import (
	"encoding/json"
	"math"
	"slices"
)

// Kind is how a figure is drawn.
type Kind string

// The kinds of figures.
const (
	// Bars are a bar for each category and series, side by side.
	Bars Kind = "bars"
	// Stack is the same with the bars of a category end to end.
	Stack Kind = "stack"
	// Dots are a line for each category with a dot for each series on it.
	Dots Kind = "dots"
	// Lines are curves over a number.
	Lines Kind = "lines"
)

// Figure is a chart and the table of what it shows.
type Figure struct {
	Title string
	// Text says how to read it.
	Text string
	Kind Kind
	// Categories are those of all kinds but Lines, from the top down.
	Categories []string
	// X is the axis of Lines. Y is that of values, which in all other kinds lies along
	// the bottom.
	X, Y   Axis
	Series []Series
	// Marks are lines at values worth knowing.
	Marks []Mark
	// ColorsOf gives the bars of a single series colors: for each category the name of a
	// series that has its color elsewhere. Nil: all have one.
	ColorsOf []string
	// TableAt are the numbers that the table of Lines has rows for, each with the last
	// value up to there. Nil: all numbers at which there is a point.
	TableAt []float64
}

// Axis is what a figure's values are.
type Axis struct {
	Name string
	Unit Unit
	Log  bool
	// Least and Most bound the axis where they differ.
	Least, Most float64
}

// Tone is a color that means something.
type Tone string

// The tones. Series without one have a color by their name, the same in all figures.
const (
	// Bound is the best that there can be.
	Bound Tone = "bound"
	// Miss is what a cache did not answer.
	Miss Tone = "miss"
	// Chosen is what was chosen of what is shown, which a single point rings.
	Chosen Tone = "chosen"
	// Rising is one of several series that rise, from pale to dark by their order.
	Rising Tone = "rising"
)

// Series is one of a figure's.
type Series struct {
	Name string
	Tone Tone
	// Values are one for each category, NaN where there is none.
	Values []float64
	// Points are those of Lines, with X rising.
	Points []Point
	// Step keeps a value until the next point; Loose draws the points alone.
	Step, Loose bool
}

// Point is a value at a number.
type Point struct{ X, Y float64 }

// Mark is a value worth knowing.
type Mark struct {
	Name string
	At   float64
}

// Table returns what the figure shows as text.
func (f *Figure) Table() Table {
	t := Table{Title: f.Title}
	if f.Kind != Lines {
		t.Columns = append(t.Columns, Column{Text: true})
		for _, s := range f.Series {
			t.Columns = append(t.Columns, Column{Name: s.Name})
		}
		for i, c := range f.Categories {
			row := []string{c}
			for _, s := range f.Series {
				row = append(row, f.Y.Unit.Text(s.value(i)))
			}
			t.Rows = append(t.Rows, row)
		}
		return t
	}
	t.Columns = append(t.Columns, Column{Name: f.X.Name})
	for _, s := range f.Series {
		t.Columns = append(t.Columns, Column{Name: s.Name})
	}
	at := f.TableAt
	if at == nil {
		for _, s := range f.Series {
			for _, p := range s.Points {
				at = append(at, p.X)
			}
		}
		slices.Sort(at)
		at = slices.Compact(at)
	}
	for _, x := range at {
		row := []string{f.X.Unit.Text(x)}
		for _, s := range f.Series {
			row = append(row, f.Y.Unit.Text(s.at(x, f.TableAt != nil)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// value returns that of a category.
func (s *Series) value(category int) float64 {
	if category < len(s.Values) {
		return s.Values[category]
	}
	return math.NaN()
}

// at returns the value at a number, or up to there.
func (s *Series) at(x float64, upTo bool) float64 {
	value := math.NaN()
	for _, p := range s.Points {
		if p.X == x || upTo && p.X < x {
			value = p.Y
		}
	}
	return value
}

// drawing is what the page's script draws a figure from.
type drawing struct {
	Kind       Kind         `json:"kind"`
	Categories []string     `json:"categories"`
	X          drawnAxis    `json:"x"`
	Y          drawnAxis    `json:"y"`
	Series     []drawnLine  `json:"series"`
	Marks      []drawnMark  `json:"marks"`
	Colors     []seriesHues `json:"colors,omitempty"` // of categories
}

type drawnAxis struct {
	Name  string `json:"name"`
	Unit  Unit   `json:"unit"`
	Log   bool   `json:"log"`
	Least number `json:"least"`
	Most  number `json:"most"`
}

type drawnLine struct {
	Name   string      `json:"name"`
	Color  seriesHues  `json:"color"`
	Values []number    `json:"values,omitempty"`
	Points [][2]number `json:"points,omitempty"`
	Step   bool        `json:"step"`
	Loose  bool        `json:"loose"`
}

type drawnMark struct {
	Name string `json:"name"`
	At   number `json:"at"`
}

// seriesHues is a color by its tone, or by its place in the palette.
type seriesHues struct {
	Tone  Tone `json:"tone,omitempty"`
	Place int  `json:"place"`
}

// number is a float64 that JSON has a word for where there is none.
type number float64

// MarshalJSON writes null for what is no number.
func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// hues gives each name a place in the palette, in the order in which they come.
type hues map[string]int

func (h hues) of(name string, t Tone, i int) seriesHues {
	switch t {
	case Rising:
		return seriesHues{t, i}
	case "":
		if _, known := h[name]; !known {
			h[name] = len(h)
		}
		return seriesHues{Place: h[name]}
	}
	return seriesHues{Tone: t}
}

func (a Axis) drawn() drawnAxis {
	d := drawnAxis{a.Name, a.Unit, a.Log, number(math.NaN()), number(math.NaN())}
	if a.Least != a.Most {
		d.Least, d.Most = number(a.Least), number(a.Most)
	}
	return d
}

// drawing returns what the script needs of the figure.
func (f *Figure) drawing(h hues) drawing {
	d := drawing{Kind: f.Kind, Categories: f.Categories, X: f.X.drawn(), Y: f.Y.drawn(), Series: []drawnLine{}, Marks: []drawnMark{}}
	for i, name := range f.ColorsOf {
		d.Colors = append(d.Colors, h.of(name, "", i))
	}
	for i, s := range f.Series {
		line := drawnLine{Name: s.Name, Step: s.Step, Loose: s.Loose}
		if f.ColorsOf == nil {
			line.Color = h.of(s.Name, s.Tone, i)
		}
		for c := range f.Categories {
			line.Values = append(line.Values, number(s.value(c)))
		}
		for _, p := range s.Points {
			line.Points = append(line.Points, [2]number{number(p.X), number(p.Y)})
		}
		d.Series = append(d.Series, line)
	}
	for _, m := range f.Marks {
		d.Marks = append(d.Marks, drawnMark{m.Name, number(m.At)})
	}
	return d
}
