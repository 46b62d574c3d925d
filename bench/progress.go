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
	if isTerminal(w) {
		p.w = w
	}
	return p
}

// isTerminal also believes a writer that says so itself.
func isTerminal(w io.Writer) bool {
	switch w := w.(type) {
	case *os.File:
		return term.IsTerminal(int(w.Fd()))
	case interface{ IsTerminal() bool }:
		return w.IsTerminal()
	default:
		return false
	}
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

// share says how much of all is done, of 1, where that is not told by steps.
func (p *progress) share(done float64, what string) {
	if p.w == nil {
		return
	}
	left := ""
	if took := time.Since(p.began); done > 0.01 && took > time.Second {
		left = fmt.Sprintf(", about %v left", time.Duration(float64(took)/done*(1-done)).Round(time.Second))
	}
	fmt.Fprintf(p.w, "%s[%.0f%%] %s%s", clearLine, 100*done, what, left)
}

// end wipes the line.
func (p *progress) end() {
	if p.w != nil {
		fmt.Fprint(p.w, clearLine)
	}
}
