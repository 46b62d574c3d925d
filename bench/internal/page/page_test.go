package page_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/terracecache/terrace/bench/internal/page"
)

// hostile is a name that breaks out of text, attributes and scripts that are not written
// with care.
const hostile = `</script><script>window.foreign=1</script><img src=x onerror="window.foreign=1">'"{{.}}`

// sample is a report with a figure of every kind, and hostile names wherever names go.
func sample() *page.Report {
	rising := func(n, from float64) []page.Point {
		var points []page.Point
		for i := range 8 {
			points = append(points, page.Point{X: 100 * math.Pow(2, float64(i)), Y: from / (1 + n*float64(i))})
		}
		return points
	}
	return &page.Report{
		Title: "Sample " + hostile, Lead: hostile, Command: "go run ./bench trace " + hostile,
		Facts:   []page.Fact{{Name: hostile, Value: hostile}},
		Notes:   []string{hostile},
		Results: page.Table{Columns: []page.Column{{Name: "name", Text: true}, {Name: "hits"}}, Rows: [][]string{{hostile, "1"}, {"b", "2"}}},
		Sections: []page.Section{
			{Figures: []page.Figure{
				{
					Title: "Hit ratio by tier", Kind: page.Stack, Categories: []string{"l1, fixed", "l1+l2+l3(memcached), xfetch", hostile},
					Y: page.Axis{Name: "share of reads", Unit: page.Share, Most: 1},
					Series: []page.Series{
						{Name: "l1", Values: []float64{0.5, 0.5, 0.2}},
						{Name: "l2", Values: []float64{math.NaN(), 0.25, 0.2}},
						{Name: "origin", Tone: page.Miss, Values: []float64{0.5, 0.25, 0.6}},
					},
				},
				{
					Title: "Latency distribution", Kind: page.Dots, Categories: []string{"l1", "l1+l2"},
					Y: page.Axis{Name: "latency", Unit: page.Seconds, Log: true},
					Series: []page.Series{
						{Name: "p50", Tone: page.Rising, Values: []float64{2e-6, 0}},
						{Name: "p99", Tone: page.Rising, Values: []float64{0.02, 0.03}},
					},
				},
				{
					Title: "Staleness", Kind: page.Bars, Categories: []string{"naive", "swr"}, ColorsOf: []string{"naive", "swr"},
					Y:      page.Axis{Name: "age", Unit: page.Seconds},
					Series: []page.Series{{Name: "oldest", Values: []float64{2, 3}}},
					Marks:  []page.Mark{{Name: "TTL", At: 2}},
				},
			}},
			{Heading: hostile, Text: hostile, Figures: []page.Figure{
				{
					Title: "Miss ratio by size " + hostile, Text: hostile, Kind: page.Lines,
					X:      page.Axis{Name: "size", Unit: page.Count, Log: true},
					Y:      page.Axis{Name: "misses", Unit: page.Share},
					Series: []page.Series{{Name: hostile, Points: rising(0.3, 0.9)}, {Name: "opt", Tone: page.Bound, Points: rising(0.5, 0.8)}},
				},
			}, Tables: []page.Table{{Title: hostile, Columns: []page.Column{{Name: hostile}}, Rows: [][]string{{hostile}}}}},
		},
		Configs: []page.Config{{Name: hostile, Text: hostile}},
	}
}

func TestPageShowsForeignTextAsText(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, part := range []string{"<script>window.foreign", "<img src=x", `'"{{.}}`} {
		if strings.Contains(text, part) {
			t.Errorf("%q stands in the page as it is", part)
		}
	}
	if n := strings.Count(text, "<script"); n != 3 {
		t.Errorf("got %d scripts, want the data, the library and the page's own", n)
	}
}

func TestTablesHaveWhatFiguresShow(t *testing.T) {
	figures := sample().Sections[0].Figures
	for i, want := range [][]string{
		{"l1+l2+l3(memcached), xfetch", "50.00 %", "25.00 %", "25.00 %"},
		{"l1+l2", "0", "30 ms"},
		{"swr", "3 s"},
	} {
		if got := figures[i].Table().Rows[1]; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", figures[i].Title, got, want)
		}
	}
	if got := figures[0].Table().Rows[0][2]; got != "–" {
		t.Errorf("no value: got %q", got)
	}
	steps := page.Figure{
		Kind: page.Lines, X: page.Axis{Name: "time", Unit: page.Seconds}, Y: page.Axis{Unit: page.Count},
		Series:  []page.Series{{Name: "a", Step: true, Points: []page.Point{{X: 0, Y: 0}, {X: 1.5, Y: 1000}, {X: 1.7, Y: 1001.25}}}},
		TableAt: []float64{0, 1, 1.6, 2},
	}
	want := [][]string{{"0", "0"}, {"1 s", "0"}, {"1.6 s", "1,000"}, {"2 s", "1,001.3"}}
	if got := steps.Table().Rows; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("over time: got %q, want %q", got, want)
	}
}

func TestUnits(t *testing.T) {
	for _, test := range []struct {
		unit page.Unit
		v    float64
		want string
	}{
		{page.Share, 0.12345, "12.35 %"},
		{page.Seconds, 1.5e-6, "1.5 µs"},
		{page.Seconds, 0.0123, "12.3 ms"},
		{page.Seconds, 250, "250 s"},
		{page.Bytes, 1536, "1.5 KiB"},
		{page.Count, 1234567, "1,234,567"},
		{page.Count, -1234, "-1,234"},
		{page.Count, 16.67, "16.7"},
		{page.Number, 0.1 + 0.2, "0.3"},
		{page.Number, math.Inf(1), "–"},
	} {
		if got := test.unit.Text(test.v); got != test.want {
			t.Errorf("%s of %v: got %q, want %q", test.unit, test.v, got, test.want)
		}
	}
}

// The library is as it was published, which its README states.
func TestLibraryIsUnchanged(t *testing.T) {
	library, err := os.ReadFile("echarts/echarts.common.min.js")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("echarts/README.md")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(library)
	if got := hex.EncodeToString(sum[:]); !strings.Contains(string(readme), got) {
		t.Errorf("echarts.common.min.js has SHA-256 %s, which the README does not state", got)
	}
}
