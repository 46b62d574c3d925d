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

const jitterHelp = `Tells what jitter of the TTL does for keys that were filled together. All keys are filled
at second 0, and each is asked for once in every second; in the second in which its life
is over it is loaded again. Lives are drawn by the cache's own lifetime, and no time
passes: it is a simulation.

Without jitter all keys end in the same second, again and again. With it the loads of a
cycle are spread over 2 × jitter × ttl, and each further cycle spreads them more.`

const jitterExample = `  go run ./bench jitter
  go run ./bench jitter --keys 100000 --ttl 10m --jitter 0,0.02,0.1 --cycles 5
  go run ./bench jitter --json - | jq '.rows[] | {jitter, busiest}'`

// jitterSettings are what the simulation is run with.
type jitterSettings struct {
	labSettings
	Keys   int
	TTL    time.Duration
	Cycles int
	Jitter []float64
	Seeds  int
}

func (s *jitterSettings) register(f *pflag.FlagSet) {
	f.IntVar(&s.Keys, "keys", 5000, "how many keys there are")
	f.DurationVar(&s.TTL, "ttl", 300*time.Second, "how long a value is fresh, give or take the jitter")
	f.IntVar(&s.Cycles, "cycles", 3, "how often each key is loaded again")
	f.Float64SliceVar(&s.Jitter, "jitter", []float64{0, 0.05, 0.1, 0.2}, "shares by which a TTL varies, a row each")
	f.IntVar(&s.Seeds, "seeds", 20, "how many runs a row is the mean of, each with a seed of its own")
	s.registerCommon(f, "of the first run; each further one has the next")
}

// maxLives bounds the work of a run, in lives that are drawn.
const maxLives = 1_000_000_000

// expiry returns what is simulated at the jitter.
func (s *jitterSettings) expiry(jitter float64) lab.Expiry {
	return lab.Expiry{Keys: s.Keys, TTL: s.TTL, Jitter: jitter, Cycles: s.Cycles}
}

// fromFlags returns what is wrong with the settings.
func (s *jitterSettings) fromFlags(f *pflag.FlagSet) error {
	for _, err := range []error{
		s.validateCommon(f),
		between("keys", s.Keys, 1, maxKeys),
		between("ttl", s.TTL, lab.LeastExpiryTTL, 30*24*time.Hour),
		between("cycles", s.Cycles, 1, 1000),
		between("seeds", s.Seeds, 1, 10_000),
	} {
		if err != nil {
			return err
		}
	}
	if len(s.Jitter) == 0 {
		return errors.New("--jitter: give at least one, such as 0.1")
	}
	for i, j := range s.Jitter {
		if !(j >= 0 && j < 1) {
			return fmt.Errorf("--jitter %v: want at least 0, and below 1", j)
		}
		if slices.Contains(s.Jitter[:i], j) {
			return fmt.Errorf("--jitter: %v is named twice", j)
		}
	}
	if lives := float64(s.Keys) * float64(s.Cycles) * float64(s.Seeds) * float64(len(s.Jitter)); lives > maxLives {
		return fmt.Errorf("--keys × --cycles × --seeds × the values of --jitter is %.0f lives to draw: at most %d", lives, maxLives)
	}
	return nil
}

func jitterCommand(stdout, stderr io.Writer) *cobra.Command {
	s := new(jitterSettings)
	return withSettings(&cobra.Command{
		Use:     "jitter",
		Short:   "Show what jitter of the TTL does for keys that end together",
		Long:    jitterHelp,
		Example: jitterExample,
	}, s, func(ctx context.Context) error { return runJitter(ctx, s, stdout, stderr) })
}

// jitterReport is all that the simulation found.
type jitterReport struct {
	Environment struct {
		labEnvironment
		Keys   int     `json:"keys"`
		TTL    float64 `json:"ttl_seconds"`
		Cycles int     `json:"cycles"`
		Seeds  int     `json:"seeds"`
	} `json:"environment"`
	Rows []jitterRow `json:"rows"`
}

// jitterRow is the mean of all runs with one jitter.
type jitterRow struct {
	Jitter  float64   `json:"jitter"`
	Busiest []float64 `json:"busiest"` // loads of the busiest second, for each cycle
	Average float64   `json:"average"` // loads a second
}

// runJitter simulates each jitter and writes the report, or what of it was done.
func runJitter(ctx context.Context, s *jitterSettings, stdout, stderr io.Writer) error {
	out, err := openOutput(s.outputFiles, stdout)
	if err != nil {
		return err
	}
	defer out.discard()
	rep := jitterReport{Rows: []jitterRow{}}
	e := &rep.Environment
	e.labEnvironment = newLabEnvironment(&s.labSettings)
	e.Keys, e.TTL, e.Cycles, e.Seeds = s.Keys, s.TTL.Seconds(), s.Cycles, s.Seeds
	stopped := rep.run(ctx, s, stderr)
	e.Complete = stopped == nil
	return out.writeLab(len(rep.Rows), rep, rep.writeTable, func() *page.Report { return rep.page(ctx) }, stopped)
}

// run adds all rows to the report.
func (r *jitterReport) run(ctx context.Context, s *jitterSettings, stderr io.Writer) error {
	p := newProgress(stderr, len(s.Jitter)*s.Seeds)
	defer p.end()
	for i, jitter := range s.Jitter {
		row := jitterRow{Jitter: jitter, Busiest: make([]float64, s.Cycles)}
		for n := range s.Seeds {
			what := fmt.Sprintf("jitter %v", jitter)
			if ctx.Err() != nil {
				return stoppedBy(ctx, what, ctx.Err())
			}
			p.at(i*s.Seeds+n, what)
			x := s.expiry(jitter).Run(s.Seed + uint64(n))
			for cycle, most := range x.Busiest {
				row.Busiest[cycle] += float64(most)
			}
			row.Average += x.Average
		}
		for cycle := range row.Busiest {
			row.Busiest[cycle] /= float64(s.Seeds)
		}
		row.Average /= float64(s.Seeds)
		r.Rows = append(r.Rows, row)
	}
	return nil
}

// columns returns those of the table.
func (r *jitterReport) columns() []columnOf[jitterRow] {
	columns := []columnOf[jitterRow]{{"jitter", -8, func(r *jitterRow) string { return fmt.Sprint(r.Jitter) }}}
	for cycle := range min(r.Environment.Cycles, 10) {
		columns = append(columns, columnOf[jitterRow]{"cycle " + fmt.Sprint(cycle+1), 10, func(r *jitterRow) string {
			return fmt.Sprintf("%.1f", r.Busiest[cycle])
		}})
	}
	columns = append(columns, columnOf[jitterRow]{"average", 10, func(r *jitterRow) string { return fmt.Sprintf("%.2f", r.Average) }})
	return columns
}

// writeTable writes the report for people.
func (r *jitterReport) writeTable(w io.Writer) error {
	var b bytes.Buffer
	e := &r.Environment
	fmt.Fprintf(&b, "%d keys filled at second 0, ttl %v, each asked for once a second; mean of %d seeds from %d\n\n",
		e.Keys, seconds(e.TTL), e.Seeds, e.Seed)
	writeColumns(&b, r.columns(), r.Rows)
	b.WriteString(`
How to read it
  jitter   the share by which each entry's ttl varies at random, Lifetime.Jitter
  cycle n  loads in the busiest second, when all keys are loaded again for the n-th time; the JSON has all cycles
  average  loads a second, over all cycles: what the busiest second would be if loads were spread evenly
`)
	_, err := w.Write(b.Bytes())
	return err
}
