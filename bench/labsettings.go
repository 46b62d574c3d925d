package main

import (
	"errors"
	"io"
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"github.com/terracecache/terrace/bench/internal/page"
)

// labSettings are what all commands of the lab have.
type labSettings struct {
	outputFiles
	Seed uint64
}

// registerCommon binds them to flags.
func (s *labSettings) registerCommon(f *pflag.FlagSet, seedOf string) {
	f.Uint64Var(&s.Seed, "seed", 1, seedOf)
	s.registerOutput(f)
}

// validateCommon returns what is wrong with them.
func (s *labSettings) validateCommon(f *pflag.FlagSet) error {
	return s.validateOutput(f)
}

// labEnvironment is what figures of the lab depend on beside a command's own settings.
type labEnvironment struct {
	Go       string   `json:"go"`
	System   string   `json:"system"`
	CPUs     int      `json:"cpus"`
	Began    string   `json:"began"`    // RFC 3339
	Complete bool     `json:"complete"` // false: interrupted, with what was done by then
	Notes    []string `json:"notes"`
	Seed     uint64   `json:"seed"`
}

func newLabEnvironment(s *labSettings) labEnvironment {
	return labEnvironment{
		Go:     runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs:   runtime.GOMAXPROCS(0),
		Began:  time.Now().Format(time.RFC3339),
		Notes:  []string{},
		Seed:   s.Seed,
	}
}

// writeLab writes a report of the lab, if it has any rows, and returns the error that
// its command ends with; stopped is the one that ended its run, if any.
func (o *output) writeLab(rows int, report any, table func(io.Writer) error, html func() *page.Report, stopped error) error {
	if rows == 0 {
		return stopped
	}
	if err := o.write(func(w io.Writer) error { return writeJSON(w, report) }, table, html); err != nil {
		return failure{errors.Join(stopped, err)}
	}
	return stopped
}
