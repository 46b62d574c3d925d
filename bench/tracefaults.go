package main

import (
	"fmt"
	"io"

	"github.com/terracecache/terrace/bench/internal/trace"
)

// traceFaults are the lines or records of a trace that were left out.
type traceFaults struct {
	n     int64
	first []string // which, and why
}

// mostFaults is how many malformed lines are told one by one.
const mostFaults = 5

func (f *traceFaults) add(m *trace.Malformed) {
	if f.n++; f.n <= mostFaults {
		f.first = append(f.first, m.Error())
	}
}

// tell tells of lines of the trace that were left out.
func (f *traceFaults) tell(name string, stderr io.Writer) {
	for _, fault := range f.first {
		fmt.Fprintf(stderr, "%s: %s\n", name, oneLine(fault))
	}
	if more := f.n - int64(len(f.first)); more > 0 {
		fmt.Fprintf(stderr, "%s: and %d more; %d malformed in all, which are left out\n", name, more, f.n)
	}
}
