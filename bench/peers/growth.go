package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// chart is one figure of how Terrace's cost grows: a table and a plot.
type chart struct {
	aspect string // what --only calls it; two charts may share one
	group  string // of its rows
	file   string // of its plot
	title  string
	xTitle string
	yTitle string
	x      func(float64) string // writes what it grows with
	linear bool                 // the axis of what it grows with
	blocks func(*growth) []block
}

// charts are all of them, in the order in which they run.
var charts = []chart{
	{
		aspect: "keys", group: "growth-keys", file: "keys.svg",
		title: "A hit in L1, all keys in random order, 1 goroutine", xTitle: "keys held", yTitle: "time of a hit",
		x: count, blocks: growthKeys,
	},
	{
		aspect: "goroutines", group: "growth-goroutines", file: "goroutines.svg",
		title: "Hits in L1, zipf 1.01 over 100,000 keys", xTitle: "goroutines", yTitle: "wall time / hits of all",
		x: count, blocks: growthGoroutines,
	},
	{
		aspect: "goroutines", group: "growth-mix", file: "mix.svg",
		title: "Hits and 10 % writes, zipf 1.01 over 100,000 keys", xTitle: "goroutines", yTitle: "wall time / operations of all",
		x: count, blocks: growthMix,
	},
	{
		aspect: "tiers", group: "growth-tiers", file: "tiers.svg",
		title: "All tiers in memory, 1 goroutine", xTitle: "tiers", yTitle: "time of an operation",
		x: count, linear: true, blocks: growthTiers,
	},
	{
		aspect: "tiers", group: "growth-tiers-redis", file: "tiers-redis.svg",
		title: "The last tier is Redis on the same machine, 1 goroutine", xTitle: "tiers", yTitle: "time of an operation",
		x: count, linear: true, blocks: growthTiersRedis,
	},
	{
		aspect: "values", group: "growth-values", file: "values.svg",
		title: "One tier: in memory, or Redis on the same machine, 1 goroutine", xTitle: "size of a value", yTitle: "time of an operation",
		x: size, blocks: growthValues,
	},
}

// aspects are what --only takes.
func aspects() []string {
	var names []string
	for _, c := range charts {
		names = append(names, c.aspect)
	}
	return slices.Compact(names)
}

// growth is a run of it.
type growth struct {
	*peers
	*growthSettings
}

func growthCommand(stdout, stderr io.Writer) *cobra.Command {
	var s growthSettings
	c := &cobra.Command{
		Use:   "growth",
		Short: "Measure how Terrace's cost grows with keys, goroutines, tiers and values",
		Long: "Measure how Terrace's cost grows with the number of keys, goroutines and tiers, and with\n" +
			"the size of values, and print a table for each; with --plots also draw it. All of it\n" +
			"takes about twenty minutes and 4 GB of memory. docs/performance.md shows what came out.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.validate(c.Flags().Changed); err != nil {
				return err
			}
			return grow(c.Context(), &s, stdout, stderr)
		},
	}
	s.register(c.Flags())
	return c
}

// grow measures, or reads what was measured, and writes all that is asked for, also
// where it ends early.
func grow(ctx context.Context, s *growthSettings, stdout, stderr io.Writer) error {
	out, err := openOutput(s.JSON, stdout)
	if err != nil {
		return err
	}
	defer out.discard()
	if s.Plots != "" {
		if err := os.MkdirAll(s.Plots, 0o755); err != nil {
			return fmt.Errorf("--plots: %w", err)
		}
	}
	if s.Doc != "" {
		if _, err := os.Stat(s.Doc); err != nil {
			return fmt.Errorf("--doc: %w", err)
		}
	}
	g := &growth{newPeers(s.settings(), stderr), s}
	measure := g.measureAll
	if s.Rows != "" {
		rows, err := readRows(s.Rows)
		if err != nil {
			return fmt.Errorf("--rows: %w", err)
		}
		measure = func(_ context.Context, done func(chart, []row) error) error { return g.replay(rows, done) }
	}
	err = measure(ctx, func(c chart, rows []row) error {
		out.rows = append(out.rows, rows...)
		return g.show(out, c, rows)
	})
	switch {
	case ctx.Err() != nil:
		err = errInterrupted
	case err != nil && len(out.rows) > 0:
		err = failure{err}
	}
	if endErr := out.end(); endErr != nil && err == nil {
		err = failure{endErr}
	}
	return err
}

// measureAll measures the charts and hands each with its rows to done.
func (g *growth) measureAll(ctx context.Context, done func(chart, []row) error) error {
	var blocks []block
	for _, c := range charts {
		if g.wants(c) {
			blocks = append(blocks, c.blocks(g)...)
		}
	}
	blocks, stop, err := g.openServers(ctx, blocks)
	if err != nil {
		return err
	}
	defer stop()
	if len(blocks) == 0 {
		return errors.New("nothing is left to measure")
	}
	for _, c := range charts {
		var own []block
		for i, b := range blocks {
			if b.group == c.group {
				own = append(own, b)
				blocks[i] = block{} // lest what it has drawn be kept until all are done
			}
		}
		if len(own) == 0 {
			continue
		}
		g.say("%s: %d steps of %d rows", c.group, len(own), len(own[0].subjects))
		// All steps in turn, lest a disturbance look like growth.
		byBlock, err := g.measure(ctx, own)
		if err != nil {
			return failure{err}
		}
		if err := done(c, slices.Concat(byBlock...)); err != nil {
			return err
		}
	}
	return nil
}

// replay hands on rows that were measured before.
func (g *growth) replay(rows []row, done func(chart, []row) error) error {
	for _, c := range charts {
		var own []row
		for _, r := range rows {
			if r.Group == c.group && r.X != nil && r.NsPerOp != nil && r.NsMin != nil && r.NsMax != nil {
				own = append(own, r)
			}
		}
		if len(own) == 0 || !g.wants(c) {
			continue
		}
		if err := done(c, own); err != nil {
			return err
		}
	}
	return nil
}

// show prints the table of a chart, puts it into the document, and draws it.
func (g *growth) show(out *output, c chart, rows []row) error {
	if out.tables {
		if err := writeGrowth(out.stdout, c, rows, g.Markdown); err != nil {
			return err
		}
	}
	if g.Doc != "" {
		var table strings.Builder
		_ = writeGrowth(&table, c, rows, true) // a Builder takes all
		if err := replaceTable(g.Doc, c.group, table.String()); err != nil {
			return fmt.Errorf("--doc: %w", err)
		}
	}
	if g.Plots == "" {
		return nil
	}
	file, err := os.Create(filepath.Join(g.Plots, c.file))
	if err != nil {
		return fmt.Errorf("--plots: %w", err)
	}
	return errors.Join(writePlot(file, c, rows), file.Close())
}
