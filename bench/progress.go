package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progress tells on a terminal how far a comparison is, in one line that it writes
// over. Where the writer is not a terminal it is silent.
type progress struct {
	w     io.Writer // nil: silent
	began time.Time
	total int
}

func newProgress(w io.Writer, total int) *progress {
	p := &progress{began: time.Now(), total: total}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.w = w
	}
	return p
}

const clearLine = "\r\x1b[K"

// at says that the step of the number, from 0, begins.
func (p *progress) at(step int, what string) {
	if p.w == nil {
		return
	}
	left := ""
	if step > 0 {
		took := time.Since(p.began)
		left = fmt.Sprintf(", about %v left", (took / time.Duration(step) * time.Duration(p.total-step)).Round(time.Second))
	}
	fmt.Fprintf(p.w, "%s[%d/%d] %s%s", clearLine, step+1, p.total, what, left)
}

// end wipes the line.
func (p *progress) end() {
	if p.w != nil {
		fmt.Fprint(p.w, clearLine)
	}
}
