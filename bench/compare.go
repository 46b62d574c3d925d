package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/terracecache/terrace/bench/internal/page"
	"github.com/terracecache/terrace/coordinator"
)

const combinationsHelp = `Compares combinations of cache tiers, each under several refresh policies, on one
workload: zipf reads at a fixed rate in front of an origin that takes its time.

l1 is an LRU and l2 Ristretto, both in memory. l3 is an embedded Redis, which needs
no server and whose latencies are not those of a real one, unless --redis or
--memcached name servers.`

const combinationsExample = `  go run ./bench
  go run ./bench --redis redis://localhost:6379 --rate 10000 --skew 1.1
  go run ./bench --combinations l1,l1+l3 --policies fixed,xfetch --origin-latency 100ms
  go run ./bench --trace cluster52.csv.zst --speed 10 --seconds 30
  go run ./bench --json - | jq '.rows[] | {combination, policy, hit_ratio}'
  go run ./bench --html report.html`

const compareHelp = combinationsHelp + `

With --config it compares the caches of documents in place of combinations, one row a
cache, with the tiers, lifetime, refresh policy and limits that the document gives
each; docs/configuration.md describes documents. Keys of the bench lie behind the
document's own prefix and a random mark, and are removed when their row is done.`

const compareExample = `  go run ./bench compare --config caches.yaml
  go run ./bench compare --config caches.yaml --set products.refresh.policy=xfetch
  go run ./bench compare --config lru.yaml --config sieve.yaml --keys 100000 --rate 10000
  go run ./bench compare --config caches.yaml --trace cluster52.csv.zst --speed 10 --seconds 30
  go run ./bench compare --config caches.yaml --json - | jq '.rows[] | {cache, policy, tiers, hit_ratio}'`

// combinationsCommand compares combinations, under the given name.
func combinationsCommand(name string, stdout, stderr io.Writer) *cobra.Command {
	s := new(settings)
	return withSettings(&cobra.Command{
		Use:     name,
		Short:   "Compare combinations of cache tiers on one workload",
		Long:    combinationsHelp,
		Example: combinationsExample,
	}, s, func(ctx context.Context) error { return compare(ctx, s, stdout, stderr) })
}

// compareCommand compares combinations, or with --config the caches of documents.
func compareCommand(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	s := new(settings)
	c := &cobra.Command{
		Use:     "compare",
		Short:   "The same; with --config, compare the caches of documents",
		Long:    compareHelp,
		Example: compareExample,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.fromFlags(c.Flags()); err != nil {
				return err
			}
			if err := s.validateConfig(c.Flags()); err != nil {
				return err
			}
			if len(s.Config) > 0 {
				return compareDocuments(c.Context(), s, stdin, stdout, stderr)
			}
			return compare(c.Context(), s, stdout, stderr)
		},
	}
	c.Flags().SortFlags = false
	s.registerConfig(c.Flags())
	s.register(c.Flags())
	return c
}

// compare measures all rows and writes the report. When the context ends or
// something fails in the middle it writes what is done, and returns an error.
func compare(ctx context.Context, s *settings, stdout, stderr io.Writer) error {
	out, err := openOutput(s.outputFiles, stdout, s.Trace)
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
	if len(r.Rows) == 0 && !errors.Is(stopped, errInterrupted) {
		return stopped
	}
	r.Environment.Complete = stopped == nil
	if err := out.write(r.writeJSON, func(w io.Writer) error { return r.writeTable(w, s) }, func() *page.Report { return r.page(ctx, s) }); err != nil {
		return failure{errors.Join(stopped, err)}
	}
	return stopped
}

// measureAll adds all rows to the report. All rows get the same reads.
func (r *report) measureAll(ctx context.Context, s *settings, groups []group, stderr io.Writer) error {
	if err := s.originAnswers(ctx); err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	w, err := s.newWorkload(ctx, stderr)
	if err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	r.Environment.Workload.Keys = len(w.keys)
	if s.Trace != "" {
		r.Environment.Workload.Malformed = &w.malformed
	}
	r.Environment.Notes = append(r.Environment.Notes, w.notes...)
	if w.due != nil {
		s.Rate = w.meanRate(s.Seconds)
		r.Environment.Workload.Rate, r.Environment.Pace = s.Rate, measureFloor(ctx, s)
	}
	total := 0
	for _, g := range groups {
		total += len(g.contenders)
	}
	p := newProgress(stderr, total)
	defer p.end()
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
	if w.broken != nil {
		return failure{w.broken}
	}
	return nil
}

func stoppedBy(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w in %s", errInterrupted, what)
	}
	if errors.Is(err, coordinator.ErrLoadTimeout) {
		what += ": the origin takes longer than the cache lets a load take: lower --origin-latency, or raise limits.load_timeout in the document"
	}
	return failure{fmt.Errorf("%s: %w", what, err)}
}
