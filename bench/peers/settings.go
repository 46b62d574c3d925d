package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// settings are what a comparison is run with; the defaults are the flags'.
type settings struct {
	Groups    []string // empty: all
	Names     []string // empty: all
	Rounds    int
	Seconds   float64 // of one measurement
	Keys      int     // of the groups with zipf
	Entries   int     // of which memory is measured
	Redis     string  // HOST:PORT; empty: a child process
	Memcached string  // HOST:PORT; empty: a child process
	JSON      string  // file beside the tables, or "-" for stdout instead of them
}

func (s *settings) register(f *pflag.FlagSet) {
	f.StringSliceVar(&s.Groups, "groups", nil, "measure these alone, of "+strings.Join(groupNames(), ", "))
	f.StringSliceVar(&s.Names, "names", nil, "measure these alone: a row's name, or its beginning up to a dash, such as terrace,otter")
	f.IntVar(&s.Rounds, "rounds", 7, "how often each is measured, all in turn")
	f.Float64Var(&s.Seconds, "seconds", 0.3, "how long one measurement takes")
	f.IntVar(&s.Keys, "keys", 100_000, "how many keys hit-zipf, mix and beside have")
	f.IntVar(&s.Entries, "entries", 1_000_000, "how many entries memory is measured with")
	f.StringVar(&s.Redis, "redis", "", "`HOST:PORT` of a Redis to use (default: redis-server is started)")
	f.StringVar(&s.Memcached, "memcached", "", "`HOST:PORT` of a memcached to use, which must take 1,100 connections (default: memcached is started)")
	f.StringVar(&s.JSON, "json", "", "write the rows as JSON to this `FILE` too; -: to stdout, instead of the tables")
}

// Bounds that keep a slip of the finger from running for days.
const (
	maxRounds  = 1000
	maxSeconds = 60
	minKeys    = 1000
	maxKeys    = 10_000_000
	minEntries = 10_000
	maxEntries = 20_000_000
)

// validate returns the first thing that is wrong, in terms of flags. changed reports
// whether a flag was given.
func (s *settings) validate(changed func(string) bool) error {
	if err := s.validateCounts(); err != nil {
		return err
	}
	switch {
	case !(s.Keys >= minKeys && s.Keys <= maxKeys):
		return fmt.Errorf("--keys %d: want %d to %d", s.Keys, minKeys, maxKeys)
	case !(s.Entries >= minEntries && s.Entries <= maxEntries):
		return fmt.Errorf("--entries %d: want %d to %d", s.Entries, minEntries, maxEntries)
	}
	// An unset variable of a script is no wish for the default.
	for _, flag := range []struct {
		name  string
		empty bool
	}{
		{"groups", len(s.Groups) == 0}, {"names", len(s.Names) == 0},
		{"redis", s.Redis == ""}, {"memcached", s.Memcached == ""}, {"json", s.JSON == ""},
	} {
		if changed(flag.name) && flag.empty {
			return errEmpty(flag.name)
		}
	}
	return s.validateNames()
}

func (s *settings) validateCounts() error {
	switch {
	case !(s.Rounds >= 1 && s.Rounds <= maxRounds):
		return fmt.Errorf("--rounds %d: want 1 to %d", s.Rounds, maxRounds)
	case !(s.Seconds > 0 && s.Seconds <= maxSeconds): // so written, NaN fails
		return fmt.Errorf("--seconds %v: want more than 0, up to %d", s.Seconds, maxSeconds)
	}
	return nil
}

func errEmpty(flag string) error {
	return fmt.Errorf("--%s is empty: leave it out, or see --help for what it wants", flag)
}

func (s *settings) validateNames() error {
	for _, g := range s.Groups {
		if !slices.Contains(groupNames(), g) {
			return fmt.Errorf("--groups: there is no %q: want some of %s", g, strings.Join(groupNames(), ", "))
		}
	}
	everything := *s
	everything.Names = nil
	blocks := newPeers(&everything, nil).blocks()
	for _, name := range s.Names {
		if len(selectSubjects(blocks, []string{name})) == 0 {
			return fmt.Errorf("--names: there is no %q in these groups", name)
		}
	}
	return nil
}

func (s *settings) wantsGroup(name string) bool {
	return len(s.Groups) == 0 || slices.Contains(s.Groups, name)
}

// isNotInstalled reports whether the error is that a program is not there.
func isNotInstalled(err error) bool { return errors.Is(err, errNotInstalled) }
