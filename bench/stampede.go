package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terracecache/terrace/bench/internal/lab"
	"github.com/terracecache/terrace/bench/internal/page"
)

const stampedeHelp = `Compares what protects an origin when a key that many read ends: strategies side by side,
in real time, on the same requests for one key, each with an origin of its own that
takes --latency for a query, runs --capacity of them at once and refuses more. All begin
with a value that was just loaded.

  naive          no protection: read, and at a miss load and write
  single-flight  one load at a time, which the others wait for; fixed TTL
  swr            one refresh in the background, while the value is served for --stale longer
  xfetch-1, -2   early refresh by chance, beta 1 and 2
  swr-jitter     swr with a TTL that varies by 10 %
  processes-N    single-flight in each of N processes, which share a store in memory
  lease-N        the same with the lease: one process at a time loads

Before that it runs published experiments on single keys, which are a second table: bursts
of misses, readers over the end of a TTL, absent keys, the spread of jittered TTLs.`

const stampedeExample = `  go run ./bench stampede
  go run ./bench stampede --rate 500 --ttl 1s --latency 50ms --capacity 10 --seconds 10
  go run ./bench stampede --arrivals poisson --seed 7
  go run ./bench stampede --json - | jq '.rows[] | {strategy, origin_calls, origin_peak, slow}'`

// stampedeSettings are what strategies are compared with.
type stampedeSettings struct {
	labSettings
	Rate      float64
	Seconds   float64
	TTL       time.Duration
	Stale     time.Duration
	Latency   time.Duration
	Capacity  int
	Slow      time.Duration
	Arrivals  string // of lab.ArrivalKinds
	Processes int
	Pause     time.Duration
}

func (s *stampedeSettings) register(f *pflag.FlagSet) {
	f.Float64Var(&s.Rate, "rate", 100, "requests a second")
	f.Float64Var(&s.Seconds, "seconds", 20, "how long they come")
	f.DurationVar(&s.TTL, "ttl", 2*time.Second, "how long a value is fresh")
	f.DurationVar(&s.Stale, "stale", time.Second, "how long past that swr serves it")
	f.DurationVar(&s.Latency, "latency", 100*time.Millisecond, "how long a query of the origin takes; by chance up to 1 % longer")
	f.IntVar(&s.Capacity, "capacity", 20, "how many queries the origin runs at once; it refuses more")
	f.DurationVar(&s.Slow, "slow", 0, "count reads that take longer than this (default: half the latency)")
	f.StringVar(&s.Arrivals, "arrivals", lab.Even, "how requests come: even, one every 1/rate seconds; or poisson, by chance")
	f.IntVar(&s.Processes, "processes", 4, "how many processes share a store, in the strategies of several")
	f.DurationVar(&s.Pause, "pause", 50*time.Millisecond, "mean time between the reads of one reader, in the published experiments")
	s.registerCommon(f, "of arrivals, of what queries take, and of what xfetch draws")
}

const (
	// maxStampede bounds the requests of a run, which are kept for the percentiles.
	maxStampede = 1_000_000
	// maxWaiting bounds the reads of one strategy that wait at one time.
	maxWaiting = 20_000
)

// fromFlags completes the settings, and returns what is wrong with them.
func (s *stampedeSettings) fromFlags(f *pflag.FlagSet) error {
	if !f.Changed("slow") {
		s.Slow = max(s.Latency/2, time.Millisecond)
	}
	for _, err := range []error{
		s.validateCommon(f),
		above("rate", s.Rate, 0, maxRate),
		above("seconds", s.Seconds, 0, maxSeconds),
		between("ttl", s.TTL, 10*time.Millisecond, maxDuration),
		between("stale", s.Stale, time.Millisecond, maxDuration),
		between("latency", s.Latency, time.Millisecond, maxFleetTime),
		between("capacity", s.Capacity, 1, 1_000_000),
		above("slow", s.Slow, 0, maxDuration),
		between("processes", s.Processes, 2, 64),
		between("pause", s.Pause, time.Millisecond, time.Second),
	} {
		if err != nil {
			return err
		}
	}
	if !slices.Contains(lab.ArrivalKinds, s.Arrivals) {
		return fmt.Errorf("--arrivals: there are no %q: want %s", s.Arrivals, strings.Join(lab.ArrivalKinds, " or "))
	}
	if s.Latency >= s.TTL {
		return fmt.Errorf("--latency %v is no less than --ttl %v: a value would be stale when it comes", s.Latency, s.TTL)
	}
	if n := s.Rate * s.Seconds; n < 1 || n > maxStampede {
		return fmt.Errorf("--rate %v for --seconds %v is %.1f requests: want 1 to %d", s.Rate, s.Seconds, n, maxStampede)
	}
	if n := s.Rate * s.Latency.Seconds(); n > maxWaiting {
		return fmt.Errorf("--rate %v with --latency %v has %.0f requests wait at once: at most %d", s.Rate, s.Latency, n, maxWaiting)
	}
	return nil
}

// comparison returns what is run.
func (s *stampedeSettings) comparison() lab.Comparison {
	return lab.Comparison{
		Strategies: lab.Strategies(lab.Lives{TTL: s.TTL, Stale: s.Stale}, s.Processes),
		Arrivals:   lab.Arrivals{Kind: s.Arrivals, Rate: s.Rate, Length: seconds(s.Seconds), Seed: s.Seed},
		Origin:     lab.OriginOptions{Latency: s.Latency, Capacity: s.Capacity},
		SlowAbove:  s.Slow,
		Seed:       s.Seed,
	}
}

func stampedeCommand(stdout, stderr io.Writer) *cobra.Command {
	s := new(stampedeSettings)
	return withSettings(&cobra.Command{
		Use:     "stampede",
		Short:   "Compare what protects an origin when a key that many read ends",
		Long:    stampedeHelp,
		Example: stampedeExample,
	}, s, func(ctx context.Context) error {
		nap, release := newNap()
		defer release()
		run := s.comparison()
		run.Await = (&pace{nap: nap}).await
		return runStampede(ctx, s, run, stdout, stderr)
	})
}

// runStampede runs the published cases and the comparison, and writes the report, or
// what of it was done.
func runStampede(ctx context.Context, s *stampedeSettings, run lab.Comparison, stdout, stderr io.Writer) error {
	out, err := openOutput(s.outputFiles, stdout)
	if err != nil {
		return err
	}
	defer out.discard()
	rep := newStampedeReport(s)
	stopped := rep.run(ctx, s, run, stderr)
	rep.Environment.Complete = stopped == nil
	return out.writeLab(len(rep.Rows)+len(rep.Cases), rep, rep.writeTable, func() *page.Report { return rep.page(ctx) }, stopped)
}

// casesTake is about how long the published cases take, in seconds.
const casesTake = 2

// run adds all rows to the report.
func (r *stampedeReport) run(ctx context.Context, s *stampedeSettings, run lab.Comparison, stderr io.Writer) error {
	p := newProgress(stderr, casesTake+int(s.Seconds+0.5))
	defer p.end()
	const cases = "published cases"
	p.at(0, cases)
	if err := r.runCases(ctx, s); err != nil {
		return stoppedBy(ctx, cases, err)
	}
	what := fmt.Sprintf("%d strategies", len(run.Strategies))
	p.at(casesTake, what)
	run.Progress = func(done time.Duration) { p.at(casesTake+int(done.Seconds()), what) }
	result, err := run.Run(ctx)
	r.add(result)
	if err != nil {
		return stoppedBy(ctx, what, err)
	}
	return nil
}

// runCases runs all published cases at once: each has an origin of its own.
func (r *stampedeReport) runCases(ctx context.Context, s *stampedeSettings) error {
	cases := lab.Cases(s.Pause)
	outcomes, errs := make([]lab.CaseOutcome, len(cases)), make([]error, len(cases))
	var running sync.WaitGroup
	for i, c := range cases {
		running.Go(func() { outcomes[i], errs[i] = c.Run(ctx, s.Seed) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, o := range outcomes {
		r.Cases = append(r.Cases, newCaseRow(o))
	}
	for _, jitter := range []float64{0, 0.1} {
		spread, err := lab.NewSpread(ctx, 5000, time.Minute, jitter)
		if err != nil {
			return err
		}
		r.Spread = append(r.Spread, spreadRow{
			Jitter: jitter, Keys: spread.Keys, TTL: 60,
			Least: spread.Least.Seconds(), Most: spread.Most.Seconds(), Tenths: spread.Tenths,
		})
	}
	return nil
}
