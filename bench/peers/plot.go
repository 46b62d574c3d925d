package main

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a plot, before the page that shows it scales it.
const (
	plotWidth   = 7.5 * vg.Inch
	plotHeight  = 4 * vg.Inch
	plotMargin  = vg.Length(10) // points
	legendWidth = vg.Length(115)
)

// palette are colours that the colour-blind tell apart too (Okabe and Ito, 2008), the
// dark ones first, as lines of them are on white.
var palette = []color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff}, // blue
	{0xd5, 0x5e, 0x00, 0xff}, // vermilion
	{0x00, 0x9e, 0x73, 0xff}, // green
	{0x55, 0x55, 0x55, 0xff}, // grey
	{0xcc, 0x79, 0xa7, 0xff}, // purple
	{0xe6, 0x9f, 0x00, 0xff}, // orange
}

var glyphs = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{},
}

// writePlot draws the rows as an SVG picture: a line for each name, with bars from the
// fastest round to the slowest. The same rows make the same bytes.
func writePlot(w io.Writer, c chart, rows []row) error {
	p := plot.New()
	p.BackgroundColor = color.White // GitHub's pages may be dark, and the text is black
	p.Title.Text = c.title
	p.X.Label.Text = c.xTitle
	p.Y.Label.Text = c.yTitle
	sans(&p.Title.TextStyle.Font, 13)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		sans(&axis.Label.TextStyle.Font, 11)
		sans(&axis.Tick.Label.Font, 10)
		axis.Padding = vg.Points(4)
	}
	p.Title.Padding = vg.Points(8)
	legend := plot.NewLegend()
	sans(&legend.TextStyle.Font, 10)
	legend.ThumbnailWidth = vg.Points(24)
	legend.Padding = vg.Points(4)
	legend.Top, legend.Left = true, true

	xs := xsOf(rows)
	p.X.Tick.Marker = ticksAt(xs, c.x)
	low, high := math.Inf(1), 0.0
	for _, r := range rows {
		low, high = min(low, *r.NsMin), max(high, *r.NsMax)
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xd8}, color.Gray{0xd8}
	p.Add(grid)
	names := namesOf(rows)
	for i, name := range names {
		if err := addSeries(p, &legend, i, name, seriesOf(rows, name, c.beside(xs, i, len(names)))); err != nil {
			return fmt.Errorf("plot %s: %w", c.file, err)
		}
	}
	p.Y.Scale = plot.LogScale{}
	p.Y.Min, p.Y.Max = roundDown(low), roundUp(high)
	p.Y.Tick.Marker = decades(p.Y.Max / p.Y.Min)
	if !c.linear {
		p.X.Scale = plot.LogScale{}
	}

	canvas := vgsvg.NewWith(vgsvg.UseWH(plotWidth, plotHeight))
	page := draw.New(canvas)
	page.SetColor(p.BackgroundColor)
	page.Fill(page.Path())
	page = draw.Crop(page, plotMargin, -plotMargin, plotMargin, -plotMargin)
	p.Draw(draw.Crop(page, 0, -legendWidth, 0, 0))
	legend.Draw(draw.Crop(page, page.Size().X-legendWidth+plotMargin, 0, 0, -vg.Points(24)))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	// The font is on few machines. Those named beside it have letters of the same width.
	_, err := w.Write(bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return err
}

func sans(f *font.Font, size float64) {
	f.Variant, f.Size = "Sans", vg.Points(size)
}

// addSeries adds the i-th line, and its name to the legend.
func addSeries(p *plot.Plot, legend *plot.Legend, i int, name string, s series) error {
	line, points, err := plotter.NewLinePoints(s)
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(s)
	if err != nil {
		return err
	}
	line.Color = palette[i%len(palette)]
	line.Width = vg.Points(1.5)
	points.Color, points.Shape, points.Radius = line.Color, glyphs[i%len(glyphs)], vg.Points(3)
	bars.Color, bars.Width, bars.CapWidth = line.Color, vg.Points(0.75), vg.Points(6)
	p.Add(bars, line, points)
	legend.Add(name, line, points)
	return nil
}

// series are the rows of one name, as the plotters ask for them.
type series struct {
	rows  []row
	place func(x float64) float64 // where a step of this name is drawn
}

func seriesOf(rows []row, name string, place func(float64) float64) series {
	s := series{place: place}
	for _, r := range rows {
		if r.Name == name {
			s.rows = append(s.rows, r)
		}
	}
	return s
}

func (s series) Len() int { return len(s.rows) }

func (s series) XY(i int) (x, y float64) { return s.place(*s.rows[i].X), *s.rows[i].NsPerOp }

func (s series) YError(i int) (below, above float64) {
	r := s.rows[i]
	return *r.NsPerOp - *r.NsMin, *r.NsMax - *r.NsPerOp
}

// beside moves the i-th of n lines a little aside, lest its bars hide another's.
func (c chart) beside(xs []float64, i, n int) func(x float64) float64 {
	const apart = 0.008 // of the axis
	by := apart * (float64(i) - float64(n-1)/2)
	first, last := xs[0], xs[len(xs)-1]
	if c.linear {
		return func(x float64) float64 { return x + by*(last-first) }
	}
	return func(x float64) float64 { return x * math.Pow(last/first, by) }
}

// ticksAt labels what was measured and nothing else.
func ticksAt(xs []float64, label func(float64) string) plot.Ticker {
	var ticks plot.ConstantTicks
	for _, x := range xs {
		ticks = append(ticks, plot.Tick{Value: x, Label: label(x)})
	}
	return ticks
}

// decades labels each power of ten, and two and five times it where that is not too
// much.
type decades float64 // the greatest time by the least

func (d decades) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for i := 1.0; i < 10; i++ {
			v := i * power
			if v < low*0.999 || v > high*1.001 {
				continue
			}
			label := ""
			if i == 1 || d <= 1000 && (i == 2 || i == 5) {
				label = plainTime(v)
			}
			if label != "" || d > 1000 {
				ticks = append(ticks, plot.Tick{Value: v, Label: label})
			}
		}
	}
	return ticks
}

// plainTime writes a time that is a round number.
func plainTime(ns float64) string {
	switch {
	case ns >= 1e6:
		return fmt.Sprintf("%g ms", math.Round(ns/1e4)/1e2)
	case ns >= 1e3:
		return fmt.Sprintf("%g µs", math.Round(ns/1e1)/1e2)
	default:
		return fmt.Sprintf("%g ns", math.Round(ns*100)/100)
	}
}

var steps = []float64{1, 2, 5, 10}

// roundDown returns the greatest of 1, 2 and 5 times a power of ten that is not above x.
func roundDown(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, s := range slices.Backward(steps) {
		if s*power <= x*1.0001 {
			return s * power
		}
	}
	return power
}

// roundUp returns the least of them that is not below x.
func roundUp(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, s := range steps {
		if s*power >= x*0.9999 {
			return s * power
		}
	}
	return 10 * power
}
