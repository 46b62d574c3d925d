package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terracecache/terrace/bench/internal/page"
	"github.com/terracecache/terrace/bench/internal/replay"
	"github.com/terracecache/terrace/bench/internal/trace"
)

const adviseHelp = `Recommends tiers, their sizes, evictions and refresh for a trace, within a memory budget, as a
document that validate accepts, with the curve that led there.

  FILE            a trace in any format that trace reads; - is stdin. Without one, requests are
                  drawn: --requests of them over --keys keys, whose popularity is --zipf
  --goal p99      the least 99th percentile of reads; among equals the least mean
         origin   the fewest loads at the origin
         cost     the least money an hour, by --origin-price, --remote-price and --memory-price,
                  of --rate requests a second
  --memory        what the tiers in this process may take. An entry takes --entry-bytes, which is
                  that of the trace's objects where it has sizes, and 180 bytes more
  --redis         a Redis whose Gets are measured: there may be a remote tier. --remote-latency
                  says what they take, without a server. Its --remote-memory is by default
                  enough for all keys

Each eviction is replayed at sizes up to the budget, alone, in two tiers, and above the remote
one. Of a trace of more than 250,000 requests that is done with a part of its keys, a tenth or
fewer, and stores made smaller alike; the result is within 2 points of hit ratio of a full
replay for the traces that docs/bench.md names. --verify replays what is advised in full and
says how far off it was; --verify-curve does so with all rows, which takes long.

Lives are left out: a hit ratio is that of entries which do not end. Memory does not grow with
the length of the trace.`

const adviseExample = `  go run ./bench advise --memory 64MiB --origin-latency 20ms web12.trace.xz
  go run ./bench advise --memory 1GiB --goal origin --config advised.yaml p3.arc.gz
  go run ./bench advise --memory 64MiB --html advice.html web12.trace.xz
  go run ./bench advise --zipf 1.1 --keys 1000000 --requests 5000000 --entry-bytes 2KiB --memory 256MiB
  go run ./bench advise --redis redis://localhost:6379 --goal cost --origin-price 5 --remote-price 0.2 trace.csv
  go run ./bench advise --json - --memory 10MiB multi1.trace.gz | jq '.rows[] | {policy, size, hit_ratio}'`

// The goals.
const (
	goalP99    = "p99"
	goalOrigin = "origin"
	goalCost   = "cost"
)

// adviseSettings are what advice is asked for.
type adviseSettings struct {
	Goal     string
	Memory   string // a size
	Entry    string // a size; empty: that of the trace
	Policies []string
	Format   string
	Seed     uint64

	Zipf     float64
	Keys     int
	Requests int

	OriginLatency time.Duration
	OriginPrice   float64 // of a million loads
	Redis         string
	RemoteLatency time.Duration
	RemoteMemory  string  // a size; empty: of all keys
	RemotePrice   float64 // of an hour
	MemoryPrice   float64 // of a GiB for an hour
	Rate          float64

	TTL      time.Duration
	MaxStale time.Duration

	Sample      float64
	Verify      bool
	VerifyCurve bool
	Name        string
	Config      string

	outputFiles

	file         string // empty: described
	memory       int64  // bytes
	entry        int64  // bytes; zero: that of the trace
	remoteMemory int64  // bytes; zero: of all keys
}

func (s *adviseSettings) register(f *pflag.FlagSet) {
	f.StringVar(&s.Goal, "goal", goalP99, "what to be best at: p99, origin, or cost")
	f.StringVar(&s.Memory, "memory", "256MiB", "the most that the tiers in this process take")
	f.StringVar(&s.Entry, "entry-bytes", "", "of a value (default: the mean of the trace's objects, 1KiB where it has no sizes)")
	f.StringSliceVar(&s.Policies, "policies", slices.Clone(replay.Policies), "evictions to choose from")
	f.StringVar(&s.Format, "format", "", "of the trace (default: told by it)")
	f.Float64Var(&s.Zipf, "zipf", 0.99, "without a trace: the skew of the requests; 0 is uniform")
	f.IntVar(&s.Keys, "keys", 100_000, "without a trace: how many keys there are")
	f.IntVar(&s.Requests, "requests", 1_000_000, "without a trace: how many requests to draw")
	f.DurationVar(&s.OriginLatency, "origin-latency", 20*time.Millisecond, "how long a load takes")
	f.Float64Var(&s.OriginPrice, "origin-price", 0, "of a million loads")
	f.StringVar(&s.Redis, "redis", "", "`URL` of a Redis that may be a tier, and whose Gets are measured")
	f.DurationVar(&s.RemoteLatency, "remote-latency", 0, "how long a Get of the remote tier takes, in place of what is measured; without --redis: there is one")
	f.StringVar(&s.RemoteMemory, "remote-memory", "", "the most that the remote tier takes (default: as much as all keys need)")
	f.Float64Var(&s.RemotePrice, "remote-price", 0, "of the remote tier for an hour")
	f.Float64Var(&s.MemoryPrice, "memory-price", 0, "of a GiB in this process for an hour")
	f.Float64Var(&s.Rate, "rate", 1000, "requests a second, for what is told of a second or an hour")
	f.DurationVar(&s.TTL, "ttl", 5*time.Minute, "how long values are fresh")
	f.DurationVar(&s.MaxStale, "max-stale", 0, "how long past that they may be served")
	f.Float64Var(&s.Sample, "sample", 0, "the share of keys to replay, up to 1, all (default: by the trace)")
	f.BoolVar(&s.Verify, "verify", false, "replay what is advised in full, too")
	f.BoolVar(&s.VerifyCurve, "verify-curve", false, "replay all that is shown in full, too")
	f.StringVar(&s.Name, "name", "advised", "of the cache in the document")
	f.StringVar(&s.Config, "config", "", "write the document to this `FILE`; -: to stdout, instead of the table")
	f.Uint64Var(&s.Seed, "seed", 0, "of the choice of keys, of what is drawn, and of the hashes of keys; what is advised holds for trace with the same one")
	s.registerOutput(f)
}

const (
	// maxPrice is that of anything.
	maxPrice = 1e9
	// maxDrawn bounds described requests, which go to disk.
	maxDrawn = 100_000_000
)

// cacheName is what a document calls a cache.
var cacheName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// fromFlags completes the settings, and returns what is wrong with them.
func (s *adviseSettings) fromFlags(f *pflag.FlagSet, files []string) error {
	for _, name := range []string{"memory", "entry-bytes", "policies", "format", "redis", "remote-memory", "config"} {
		if flag := f.Lookup(name); flag.Changed && (flag.Value.String() == "" || flag.Value.String() == "[]") {
			return fmt.Errorf("--%s is empty: give it a value, or leave it out", name)
		}
	}
	if err := s.validateOutput(f); err != nil {
		return err
	}
	if err := s.takeFile(f, files); err != nil {
		return err
	}
	for i, p := range s.Policies {
		if !slices.Contains(replay.Policies, p) {
			return fmt.Errorf("--policies: there is no %q: want some of %s", p, strings.Join(replay.Policies, ", "))
		}
		if slices.Contains(s.Policies[:i], p) {
			return fmt.Errorf("--policies: %s is named twice", p)
		}
	}
	for _, size := range []struct {
		flag, text string
		to         *int64
	}{{"memory", s.Memory, &s.memory}, {"entry-bytes", s.Entry, &s.entry}, {"remote-memory", s.RemoteMemory, &s.remoteMemory}} {
		if size.text == "" {
			continue
		}
		n, err := parseTraceSize(size.text)
		if err != nil || !n.bytes {
			return fmt.Errorf("--%s: %q: want a size with its unit, such as 256MiB", size.flag, size.text)
		}
		*size.to = n.n
	}
	for _, err := range []error{
		between("zipf", s.Zipf, 0, 10),
		between("keys", s.Keys, 1, maxKeys),
		between("requests", s.Requests, 1, maxDrawn),
		between("origin-latency", s.OriginLatency, time.Microsecond, maxDuration),
		between("origin-price", s.OriginPrice, 0, maxPrice),
		between("remote-latency", s.RemoteLatency, 0, maxDuration),
		between("remote-price", s.RemotePrice, 0, maxPrice),
		between("memory-price", s.MemoryPrice, 0, maxPrice),
		above("rate", s.Rate, 0, maxRate),
		between("ttl", s.TTL, time.Second, 365*24*time.Hour),
		between("max-stale", s.MaxStale, 0, 365*24*time.Hour),
		between("sample", s.Sample, 0, 1),
	} {
		if err != nil {
			return err
		}
	}
	return s.checkTogether(f)
}

// takeFile takes over the trace, or sees that none is meant.
func (s *adviseSettings) takeFile(f *pflag.FlagSet, files []string) error {
	switch {
	case len(files) > 1:
		return fmt.Errorf("%d traces: advice is for one; give them in one, or a trace at a time", len(files))
	case len(files) == 1 && files[0] == "":
		return errors.New("the name of the trace is empty")
	case len(files) == 1:
		s.file = files[0]
		for _, name := range []string{"zipf", "keys", "requests"} {
			if f.Changed(name) {
				return fmt.Errorf("--%s is of requests that are drawn, and there is a trace, %s: leave one out", name, s.file)
			}
		}
	case s.Format != "":
		return errors.New("--format: there is no trace that could have one")
	}
	if s.Format != "" && !slices.Contains(trace.Formats, trace.Format(s.Format)) {
		return fmt.Errorf("--format: there is no %q: want one of %s", s.Format, join(trace.Formats))
	}
	return nil
}

// checkTogether returns what of the settings does not go together.
func (s *adviseSettings) checkTogether(f *pflag.FlagSet) error {
	switch {
	case !slices.Contains([]string{goalP99, goalOrigin, goalCost}, s.Goal):
		return fmt.Errorf("--goal: there is no %q: want %s, %s or %s", s.Goal, goalP99, goalOrigin, goalCost)
	case s.Goal == goalCost && s.OriginPrice == 0:
		return errors.New("--goal cost: want an --origin-price, which is what a cache saves")
	case s.JSON == "-" && s.Config == "-":
		return errors.New("--json and --config both go to stdout: name a file for one")
	case !s.hasRemote() && (s.remoteMemory > 0 || s.RemotePrice > 0):
		return errors.New("--remote-memory and --remote-price: there is no remote tier: want --redis or --remote-latency")
	case f.Changed("remote-latency") && s.RemoteLatency == 0:
		return errors.New("--remote-latency 0s: want more, or leave it out")
	case !cacheName.MatchString(s.Name):
		return fmt.Errorf("--name %q: want letters, digits, _ and -, a letter first", s.Name)
	}
	return nil
}

// hasRemote reports whether there may be a remote tier.
func (s *adviseSettings) hasRemote() bool { return s.Redis != "" || s.RemoteLatency > 0 }

func adviseCommand(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	s := new(adviseSettings)
	c := &cobra.Command{
		Use:     "advise [FILE]",
		Short:   "Recommend tiers, sizes, evictions and refresh for a trace and a budget, as a document",
		Long:    adviseHelp,
		Example: adviseExample,
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.fromFlags(c.Flags(), args); err != nil {
				return err
			}
			return runAdvise(c.Context(), s, stdin, stdout, stderr)
		},
	}
	c.Flags().SortFlags = false
	s.register(c.Flags())
	return c
}

// runAdvise finds the advice and writes it, or what of the curve was done.
func runAdvise(ctx context.Context, s *adviseSettings, stdin io.Reader, stdout, stderr io.Writer) error {
	t := &traceSettings{Format: s.Format, Seed: s.Seed}
	var inputs []*traceInput
	if s.file != "" {
		t.files = []string{s.file}
		var err error
		inputs, err = openTraces(t, stdin)
		defer func() {
			for _, in := range inputs {
				in.close()
			}
		}()
		if err != nil {
			return err
		}
	}
	out, err := openOutput(s.outputFiles, stdout, s.file)
	if err != nil {
		return err
	}
	defer out.discard()
	document, err := openDocument(s.Config, stdout, s.file)
	if err != nil {
		return err
	}
	defer document.discard()
	if flag := document.writtenBy(out); flag != "" {
		return fmt.Errorf("%s and --config are the same file, %s", flag, s.Config)
	}
	if document != nil && document.stdout {
		out.stdout = io.Discard
	}
	remote, err := s.measureRemote(ctx)
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return err
	}

	a := newAdvice(s, remote)
	stopped := a.run(ctx, s, t, inputs, stderr)
	if len(a.Rows) == 0 && stopped != nil {
		return stopped
	}
	a.Environment.Complete = stopped == nil
	err = out.write(func(w io.Writer) error { return writeJSON(w, a) }, func(w io.Writer) error { return a.writeTable(w, s) },
		func() *page.Report { return a.page(ctx, s) })
	if err == nil && a.Advice != nil {
		err = document.write(a.Advice.Config)
	}
	if err != nil {
		return failure{errors.Join(stopped, err)}
	}
	return stopped
}
