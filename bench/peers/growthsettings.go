package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// growthSettings are what growth is run with.
type growthSettings struct {
	Only     []string // aspects; empty: all
	Rounds   int
	Seconds  float64 // of one measurement
	MostKeys int
	Redis    string // HOST:PORT; empty: a child process
	JSON     string // file beside the tables, or "-" for stdout instead of them
	Plots    string // directory
	Markdown bool
	Doc      string // file whose tables are replaced
	Rows     string // file of rows to show, instead of measuring
}

func (s *growthSettings) register(f *pflag.FlagSet) {
	f.StringSliceVar(&s.Only, "only", nil, "measure these alone, of "+strings.Join(aspects(), ", "))
	f.IntVar(&s.Rounds, "rounds", 5, "how often each is measured, all in turn")
	f.Float64Var(&s.Seconds, "seconds", 0.3, "how long one measurement takes")
	f.IntVar(&s.MostKeys, "most-keys", 10_000_000, "the most keys held; all of them take about 4 GB")
	f.StringVar(&s.Redis, "redis", "", "`HOST:PORT` of a Redis to use (default: redis-server is started)")
	f.StringVar(&s.JSON, "json", "", "write the rows as JSON to this `FILE` too; -: to stdout, instead of the tables")
	f.StringVar(&s.Plots, "plots", "", "draw each table as an SVG file in this `DIR`")
	f.BoolVar(&s.Markdown, "markdown", false, "print the tables as Markdown")
	f.StringVar(&s.Doc, "doc", "", "replace the tables in this Markdown `FILE`, each below its line <!-- growth-… -->")
	f.StringVar(&s.Rows, "rows", "", "measure nothing, show the rows in this `FILE` that --json wrote")
}

// validate returns the first thing that is wrong, in terms of flags.
func (s *growthSettings) validate(changed func(string) bool) error {
	if err := s.settings().validateCounts(); err != nil {
		return err
	}
	if !(s.MostKeys >= minKeys && s.MostKeys <= maxKeys) {
		return fmt.Errorf("--most-keys %d: want %d to %d", s.MostKeys, minKeys, maxKeys)
	}
	for _, flag := range []struct {
		name  string
		empty bool
	}{
		{"only", len(s.Only) == 0}, {"redis", s.Redis == ""}, {"json", s.JSON == ""},
		{"plots", s.Plots == ""}, {"doc", s.Doc == ""}, {"rows", s.Rows == ""},
	} {
		if changed(flag.name) && flag.empty {
			return errEmpty(flag.name)
		}
	}
	for _, name := range s.Only {
		if !slices.Contains(aspects(), name) {
			return fmt.Errorf("--only: there is no %q: want some of %s", name, strings.Join(aspects(), ", "))
		}
	}
	return nil
}

// settings are those of the loops that growth shares with the comparison.
func (s *growthSettings) settings() *settings {
	return &settings{Rounds: s.Rounds, Seconds: s.Seconds, Keys: min(growthZipfKeys, s.MostKeys), Entries: minEntries, Redis: s.Redis}
}

func (s *growthSettings) wants(c chart) bool {
	return len(s.Only) == 0 || slices.Contains(s.Only, c.aspect)
}
