package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terracecache/terrace/bench/internal/lab"
	"github.com/terracecache/terrace/bench/internal/page"
)

const xfetchHelp = `Tells how likely one read starts a refresh under XFetch, so and so long before a value's
end: by the decision that the cache makes, many times, beside the formula
exp(-before / (beta × delta)).

delta is how long the last load of the value took, beta the policy's parameter. A key
that is read n times a second is refreshed the earlier the greater n is.`

const xfetchExample = `  go run ./bench xfetch
  go run ./bench xfetch --delta 20ms --beta 2 --before 200ms,100ms,50ms,0s
  go run ./bench xfetch --json - | jq '.rows[] | {before_seconds, share, formula}'`

// xfetchSettings are what decisions are drawn with.
type xfetchSettings struct {
	labSettings
	Delta  time.Duration
	Beta   float64
	Draws  int
	Before []time.Duration
}

func (s *xfetchSettings) register(f *pflag.FlagSet) {
	const ms = time.Millisecond
	f.DurationVar(&s.Delta, "delta", 100*ms, "how long a load of the value takes")
	f.Float64Var(&s.Beta, "beta", 1, "xfetch's beta: above 1 refreshes earlier")
	f.IntVar(&s.Draws, "draws", 100_000, "how many reads each row is made of")
	f.DurationSliceVar(&s.Before, "before", []time.Duration{500 * ms, 300 * ms, 200 * ms, 100 * ms, 50 * ms, 0}, "how long before the value's end they read, a row each")
	s.registerCommon(f, "of the draws")
}

// fromFlags returns what is wrong with the settings.
func (s *xfetchSettings) fromFlags(f *pflag.FlagSet) error {
	for _, err := range []error{
		s.validateCommon(f),
		above("delta", s.Delta, 0, maxDuration),
		above("beta", s.Beta, 0, 1000),
		between("draws", s.Draws, 1, 100_000_000),
	} {
		if err != nil {
			return err
		}
	}
	if len(s.Before) == 0 {
		return errors.New("--before: give at least one, such as 100ms")
	}
	for i, before := range s.Before {
		if err := between("before", before, 0, 24*maxDuration); err != nil {
			return err
		}
		if slices.Contains(s.Before[:i], before) {
			return fmt.Errorf("--before: %v is named twice", before)
		}
	}
	if draws := float64(s.Draws) * float64(len(s.Before)); draws > maxLives {
		return fmt.Errorf("--draws × the values of --before is %.0f draws: at most %d", draws, maxLives)
	}
	return nil
}

func xfetchCommand(stdout, stderr io.Writer) *cobra.Command {
	s := new(xfetchSettings)
	return withSettings(&cobra.Command{
		Use:     "xfetch",
		Short:   "Show how likely a read starts a refresh under XFetch",
		Long:    xfetchHelp,
		Example: xfetchExample,
	}, s, func(ctx context.Context) error { return runXFetch(ctx, s, stdout, stderr) })
}

// xfetchReport is all that was drawn.
type xfetchReport struct {
	Environment struct {
		labEnvironment
		Delta float64 `json:"delta_seconds"`
		Beta  float64 `json:"beta"`
		Draws int     `json:"draws"`
	} `json:"environment"`
	Rows []xfetchRow `json:"rows"`
}

// xfetchRow is the reads so long before a value's end.
type xfetchRow struct {
	Before  float64 `json:"before_seconds"`
	Share   float64 `json:"share"`   // of them that start a refresh
	Formula float64 `json:"formula"` // what that share should be
}

// runXFetch draws all rows and writes the report, or what of it was done.
func runXFetch(ctx context.Context, s *xfetchSettings, stdout, stderr io.Writer) error {
	out, err := openOutput(s.outputFiles, stdout)
	if err != nil {
		return err
	}
	defer out.discard()
	rep := xfetchReport{Rows: []xfetchRow{}}
	e := &rep.Environment
	e.labEnvironment = newLabEnvironment(&s.labSettings)
	e.Delta, e.Beta, e.Draws = s.Delta.Seconds(), s.Beta, s.Draws
	stopped := rep.run(ctx, s, stderr)
	e.Complete = stopped == nil
	return out.writeLab(len(rep.Rows), rep, rep.writeTable, func() *page.Report { return rep.page(ctx) }, stopped)
}

// run adds all rows to the report.
func (r *xfetchReport) run(ctx context.Context, s *xfetchSettings, stderr io.Writer) error {
	p := newProgress(stderr, len(s.Before))
	defer p.end()
	for i, before := range s.Before {
		what := fmt.Sprintf("%v before", before)
		if ctx.Err() != nil {
			return stoppedBy(ctx, what, ctx.Err())
		}
		p.at(i, what)
		r.Rows = append(r.Rows, xfetchRow{
			Before:  before.Seconds(),
			Share:   lab.RefreshShare(s.Beta, before, s.Delta, s.Draws, s.Seed),
			Formula: lab.RefreshFormula(s.Beta, before, s.Delta),
		})
	}
	return nil
}

// xfetchColumns are those of the table.
var xfetchColumns = []columnOf[xfetchRow]{
	{"before the end", -15, func(r *xfetchRow) string { return seconds(r.Before).String() }},
	{"refresh %", 10, func(r *xfetchRow) string { return fmt.Sprintf("%.2f", 100*r.Share) }},
	{"formula %", 10, func(r *xfetchRow) string { return fmt.Sprintf("%.2f", 100*r.Formula) }},
}

// writeTable writes the report for people.
func (r *xfetchReport) writeTable(w io.Writer) error {
	var b bytes.Buffer
	e := &r.Environment
	fmt.Fprintf(&b, "xfetch of beta %v; a load takes %v; %d reads a row; seed %d\n\n", e.Beta, seconds(e.Delta), e.Draws, e.Seed)
	writeColumns(&b, xfetchColumns, r.Rows)
	b.WriteString(`
How to read it
  refresh %  share of the reads, so long before a value's end, that start a refresh: one read decides alone, by chance
  formula %  exp(-before / (beta × delta)), which it should be
`)
	_, err := w.Write(b.Bytes())
	return err
}
