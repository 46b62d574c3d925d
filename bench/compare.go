package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

const compareHelp = `Compares combinations of cache tiers, each under several refresh policies, on one
workload: zipf reads at a fixed rate in front of an origin that takes its time.

l1 is an LRU and l2 Ristretto, both in memory. l3 is an embedded Redis, which needs
no server and whose latencies are not those of a real one, unless --redis or
--memcached name servers.`

const compareExample = `  go run ./bench
  go run ./bench --redis redis://localhost:6379 --rate 10000 --skew 1.1
  go run ./bench --combinations l1,l1+l3 --policies fixed,xfetch --origin-latency 100ms
  go run ./bench --json - | jq '.rows[] | {combination, policy, hit_ratio}'`

func compareCommand(stdout, stderr io.Writer) *cobra.Command {
	s := new(settings)
	c := &cobra.Command{
		Use:           "bench",
		Short:         "Compare combinations of cache tiers on one workload",
		Long:          compareHelp,
		Example:       compareExample,
		Args:          noArguments,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.complete(c.Flags()); err != nil {
				return err
			}
			if err := s.validate(); err != nil {
				return err
			}
			return compare(c.Context(), s, stdout, stderr)
		},
	}
	c.CompletionOptions.DisableDefaultCmd = true
	c.Flags().SortFlags = false
	s.register(c.Flags())
	return c
}

// compare measures all rows and writes the report. When the context ends or
// something fails in the middle it writes what is done, and returns an error.
func compare(ctx context.Context, s *settings, stdout, stderr io.Writer) error {
	out, err := openOutput(s.JSON, stdout)
	if err != nil {
		return err
	}
	defer out.discard()
	remotes, err := openRemotes(ctx, s)
	defer closeRemotes(remotes)
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return err
	}

	rep := &report{Environment: newEnvironment(ctx, s, remotes), Rows: []row{}}
	return rep.measure(ctx, s, groups(s, combinations(s, remotes)), out, stderr)
}

// measure measures all rows and writes the report, or what of it was done.
func (r *report) measure(ctx context.Context, s *settings, groups []group, out *output, stderr io.Writer) error {
	stopped := r.measureAll(ctx, s, groups, stderr)
	if len(r.Rows) == 0 {
		return stopped
	}
	r.Environment.Complete = stopped == nil
	if err := out.write(r, s); err != nil {
		return failure{errors.Join(stopped, err)}
	}
	return stopped
}

// measureAll adds all rows to the report. All rows get the same reads.
func (r *report) measureAll(ctx context.Context, s *settings, groups []group, stderr io.Writer) error {
	total := 0
	for _, g := range groups {
		total += len(g.contenders)
	}
	p := newProgress(stderr, total)
	defer p.end()
	w := newWorkload(s.Keys, s.Skew, s.reads(s.WarmupSeconds)+s.reads(s.Seconds), s.Seed)
	step := 0
	for _, g := range groups {
		heap := -1.0
		if g.heap != nil {
			p.at(step, g.name+": heap")
			var err error
			if heap, err = g.heap(ctx); err != nil {
				return stoppedBy(ctx, g.name, err)
			}
		}
		for _, c := range g.contenders {
			p.at(step, c.label)
			runtime.GC() // each row begins with the same heap
			row, err := watched(ctx, c.remote, func(ctx context.Context) (row, error) {
				return measure(ctx, s, w, c)
			})
			if err != nil {
				return stoppedBy(ctx, c.label, err)
			}
			row.HeapPerEntry = heap
			r.Rows = append(r.Rows, row)
			for _, note := range row.notes {
				r.Environment.Notes = append(r.Environment.Notes, c.label+": "+note)
			}
			step++
		}
	}
	return nil
}

func stoppedBy(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w in %s", errInterrupted, what)
	}
	return failure{fmt.Errorf("%s: %w", what, err)}
}
