package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // of the page's parts
	"encoding/base64"
	"html/template"
	"io"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
	//go:embed echarts/echarts.common.min.js
	library string
)

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// shown is a report with what the page needs beside it.
type shown struct {
	*Report
	Policy    string
	CSS       template.CSS
	Library   template.JS
	Script    template.JS
	ShownData []drawing
	Parts     []shownSection
}

type shownSection struct {
	Section
	Shown []shownFigure
}

type shownFigure struct {
	Figure
	Number int // of ShownData
	Data   Table
}

// WriteHTML writes the page.
func (r *Report) WriteHTML(w io.Writer) error {
	p := shown{
		Report: r,
		// Only these scripts run, and nothing is asked of any network.
		Policy: "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src " + hashed(library) + " " + hashed(pageJS),
		CSS:    template.CSS(pageCSS), Library: template.JS(library), Script: template.JS(pageJS),
		ShownData: []drawing{},
	}
	h := make(hues)
	for _, s := range r.Sections {
		part := shownSection{Section: s}
		for _, f := range s.Figures {
			part.Shown = append(part.Shown, shownFigure{f, len(p.ShownData), f.Table()})
			p.ShownData = append(p.ShownData, f.drawing(h))
		}
		p.Parts = append(p.Parts, part)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// hashed names a script in a Content-Security-Policy.
func hashed(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
