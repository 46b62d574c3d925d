package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
)

// workloadNames are the kinds of workloads, beside that of a trace.
var workloadNames = []string{"zipf", "uniform", "scan", "burst", "hot-key", "shifting", "mixed"}

const (
	// hotShare is how many of a hot-key workload's reads are for one key.
	hotShare = 0.5
	// shifts is how often in the open loop popularity moves on, and shiftBy to how many
	// keys further, as a share of all.
	shifts, shiftBy = 5, 0.2
)

// newWorkload makes the workload of the settings, which are valid. What is left out of a
// trace is told on stderr.
func (s *settings) newWorkload(ctx context.Context, stderr io.Writer) (*workload, error) {
	n := s.reads(s.WarmupSeconds) + s.reads(s.Seconds)
	if s.Trace != "" {
		return s.traceWorkload(ctx, n, stderr)
	}
	skew := s.Skew
	if s.Workload == "uniform" {
		skew = 0
	}
	w := newWorkload(s.Keys, skew, n, s.Seed)
	rnd := rand.New(rand.NewPCG(s.Seed, 2))
	switch s.Workload {
	case "scan":
		for i := range w.sequence {
			w.sequence[i] = uint32(i % s.Keys)
		}
	case "burst":
		w.batch = s.Burst
		for i := range w.sequence {
			w.sequence[i] = w.sequence[i-i%s.Burst]
		}
	case "hot-key":
		for i := range w.sequence {
			if rnd.Float64() < hotShare {
				w.sequence[i] = 0
			}
		}
	case "shifting":
		every := max(1, s.reads(s.Seconds)/shifts)
		by := max(1, int(shiftBy*float64(s.Keys)))
		for i := range w.sequence {
			w.sequence[i] = uint32((int(w.sequence[i]) + i/every*by) % s.Keys)
		}
	}
	if s.Writes > 0 || s.Deletes > 0 {
		w.ops = make([]operation, len(w.sequence))
		for i := range w.ops {
			switch u := rnd.Float64(); {
			case u < s.Writes:
				w.ops[i] = opWrite
			case u < s.Writes+s.Deletes:
				w.ops[i] = opDelete
			}
		}
	}
	return w, nil
}

// validateWorkload returns what is wrong with the workload that is asked for.
func (s *settings) validateWorkload() error {
	if !slices.Contains(workloadNames, s.Workload) {
		return fmt.Errorf("--workload: there is no %q: want %s", s.Workload, strings.Join(workloadNames, ", "))
	}
	if err := knownFormat(s.Format); err != nil {
		return err
	}
	for _, err := range []error{
		between("burst", s.Burst, 1, maxConcurrency),
		between("writes", s.Writes, 0, 1),
		between("deletes", s.Deletes, 0, 1),
	} {
		if err != nil {
			return err
		}
	}
	if s.Writes+s.Deletes >= 1 {
		return fmt.Errorf("--writes %v and --deletes %v leave no reads", s.Writes, s.Deletes)
	}
	for i, n := range s.Goroutines {
		if err := between("goroutines", n, 1, maxConcurrency); err != nil {
			return err
		}
		if slices.Contains(s.Goroutines[:i], n) {
			return fmt.Errorf("--goroutines: %d is named twice", n)
		}
	}
	return nil
}

// workloadLabel tells people what is asked for.
func (s *settings) workloadLabel(keys int) string {
	label := fmt.Sprintf("zipf %v", s.Skew)
	switch {
	case s.Trace != "":
		label = "trace " + s.Trace
		if s.Speed > 0 {
			label += fmt.Sprintf(" at %v times its speed", s.Speed)
		}
	case s.Workload == "uniform" || s.Workload == "scan":
		label = s.Workload
	case s.Workload == "burst":
		label += fmt.Sprintf(", %d reads of a key at once,", s.Burst)
	case s.Workload == "hot-key":
		label += fmt.Sprintf(", %v %% for one key,", 100*hotShare)
	case s.Workload == "shifting":
		label += fmt.Sprintf(", shifting %d times by %v %% of the keys,", shifts, 100*shiftBy)
	}
	label += fmt.Sprintf(" over %d keys", keys)
	if s.Writes > 0 || s.Deletes > 0 {
		label += fmt.Sprintf(", %v %% writes, %v %% deletes", 100*s.Writes, 100*s.Deletes)
	}
	return label
}
