package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terracecache/terrace/bench/internal/page"
	"github.com/terracecache/terrace/bench/internal/replay"
	"github.com/terracecache/terrace/bench/internal/trace"
)

const traceHelp = `Replays recorded requests through the stores that tiers are made of, and tells how many were
hits: by each eviction at each size, by combinations of tiers, and by the best that there can
be (opt), which knows the future.

  FILE            a trace, packed with gzip, xz, zstd or bzip2 or not; - is stdin
  --sizes         in entries (500), in percent of the trace's keys (10%), or in bytes of the
                  trace's objects (10MB, 1GiB), which tinylfu and w-tinylfu can be bounded by
  --tiers         NAME:SIZE[:POLICY],… from the top, such as l1:500,l2:2000; the first is lru
                  and the others tinylfu where no policy is named. May be repeated
  --policies      lru, 2q, arc, sieve (each in one part, which is exact), tinylfu (Ristretto),
                  w-tinylfu (Otter); with -sharded behind, as in lru-sharded, one that has parts
                  is split as it is in a cache. Beside lru that is always shown, and opt too

Formats are told apart by what is in the file and by its name, or said with --format:

  plain           one key a line
  lirs            a block number a line, * is a mark
  arc             start count ignored requestNo
  cache2k, corda  big-endian int32, int64
  address         l or s, an address, a count, and perhaps two penalties
  twitter         CSV of the Twitter clusters
  libcachesim     CSV with a header
  oraclegeneral   libCacheSim's binary form
  cachelib        CacheLib's key-value CSV, with a header
  sized           sequence key sizeBytes

A line that is not of the format is left out, told on stderr and counted. Where an archive is
cut off, what could be read is replayed, and the exit code is 1. It is also 1 if a store held
more than it may, or had more hits than opt.

Memory does not grow with the trace: it is put into temporary files ($TMPDIR) of 16 to 32 bytes
a request, and in memory there is what the stores hold. Keys that are text are hashed to 64
bits. --seed is of that hash, and of those of sieve and the sharded ones, which so have the same
hits again; tinylfu and w-tinylfu draw by themselves.`

const traceExample = `  go run ./bench trace multi1.trace.gz
  go run ./bench trace --policies lru,sieve --sizes 500,1000,10% *.trace.xz
  go run ./bench trace --tiers l1:100,l2:1900 --tiers l1:100:sieve,l2:1900:w-tinylfu web12.trace.xz
  go run ./bench trace --sizes 1%,2%,5%,10%,25%,50% --html report.html multi1.trace.gz
  go run ./bench trace --sizes 10MB,100MB --format twitter cluster052.zst
  zcat keys.gz | go run ./bench trace --json - - | jq '.rows[] | {policy, size, hit_ratio}'`

// traceSettings are what traces are replayed with.
type traceSettings struct {
	Policies []string // of replay.Policies, and optimum
	Sizes    []string
	Tiers    []string // a combination each
	Format   string   // of trace.Formats; empty: told by the file
	Seed     uint64
	outputFiles

	files        []string
	sizes        []traceSize
	combinations []traceCombination
}

// optimum is the name of the bound among the policies.
const optimum = "opt"

func (s *traceSettings) register(f *pflag.FlagSet) {
	f.StringSliceVar(&s.Policies, "policies", slices.Clone(replay.Policies), "evictions to replay")
	f.StringSliceVar(&s.Sizes, "sizes", []string{"1%", "5%", "25%"}, "sizes to replay each at: entries, percent of the keys, or bytes")
	f.StringArrayVar(&s.Tiers, "tiers", nil, "a combination to replay, `NAME:SIZE[:POLICY],…`; may be repeated. Alone, it is all that is replayed")
	f.StringVar(&s.Format, "format", "", "of the files (default: told by each)")
	f.Uint64Var(&s.Seed, "seed", 0, "of the hashes of keys: with the same one all but tinylfu and w-tinylfu have the same hits again")
	s.registerOutput(f)
}

// fromFlags completes the settings, and returns what is wrong with them.
func (s *traceSettings) fromFlags(f *pflag.FlagSet, files []string) error {
	for _, name := range []string{"policies", "sizes", "tiers", "format"} {
		if flag := f.Lookup(name); flag.Changed && (flag.Value.String() == "" || flag.Value.String() == "[]") {
			return fmt.Errorf("--%s is empty: give it a value, or leave it out", name)
		}
	}
	if err := s.validateOutput(f); err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("no trace: name files, or - for stdin, see --help")
	}
	for i, file := range files {
		if file == "" {
			return errors.New("the name of a file is empty")
		}
		if slices.Contains(files[:i], file) {
			return fmt.Errorf("%s is named twice", file)
		}
	}
	s.files = files
	if err := knownFormat(s.Format); err != nil {
		return err
	}
	for i, p := range s.Policies {
		if p != optimum && !replay.Known(p) {
			return fmt.Errorf("--policies: there is no %q: want some of %s or %s", p, strings.Join(replay.Policies, ", "), optimum)
		}
		if slices.Contains(s.Policies[:i], p) {
			return fmt.Errorf("--policies: %s is named twice", p)
		}
	}
	for _, text := range s.Sizes {
		size, err := parseTraceSize(text)
		if err != nil {
			return fmt.Errorf("--sizes: %w", err)
		}
		s.sizes = append(s.sizes, size)
	}
	if err := s.checkBytes(f.Changed("policies")); err != nil {
		return err
	}
	for _, text := range s.Tiers {
		c, err := parseTraceCombination(text)
		if err != nil {
			return fmt.Errorf("--tiers %s: %w", text, err)
		}
		s.combinations = append(s.combinations, c)
	}
	if len(s.Tiers) > 0 && !f.Changed("sizes") && !f.Changed("policies") {
		s.sizes = nil
	}
	return nil
}

// checkBytes refuses policies that were named if none can be bounded by bytes, and all
// sizes are of bytes: nothing would be left to replay. Of several the others are left out.
func (s *traceSettings) checkBytes(named bool) error {
	if !named || slices.ContainsFunc(s.sizes, func(size traceSize) bool { return !size.bytes }) ||
		slices.ContainsFunc(s.Policies, func(p string) bool { return p == optimum || replay.CanBytes(p) }) {
		return nil
	}
	return fmt.Errorf("--policies: %s: bounded by entries, and --sizes are of bytes: want tinylfu or w-tinylfu, or sizes in entries", strings.Join(s.Policies, ", "))
}

// knownFormat returns what is wrong with the name of a format; empty: the file tells.
func knownFormat(name string) error {
	if name == "" || slices.Contains(trace.Formats, trace.Format(name)) {
		return nil
	}
	return fmt.Errorf("--format: there is no %q: want one of %s", name, join(trace.Formats))
}

func join[S ~string](names []S) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}

func traceCommand(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	s := new(traceSettings)
	c := &cobra.Command{
		Use:     "trace FILE…",
		Short:   "Replay recorded requests: hit ratios by eviction, size and tiers, beside the best possible",
		Long:    traceHelp,
		Example: traceExample,
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.fromFlags(c.Flags(), args); err != nil {
				return err
			}
			return runTrace(c.Context(), s, stdin, stdout, stderr)
		},
	}
	c.Flags().SortFlags = false
	s.register(c.Flags())
	return c
}

// runTrace replays all traces and writes the report, or what of it was done.
func runTrace(ctx context.Context, s *traceSettings, stdin io.Reader, stdout, stderr io.Writer) error {
	inputs, err := openTraces(s, stdin)
	defer func() {
		for _, in := range inputs {
			in.close()
		}
	}()
	if err != nil {
		return err
	}
	out, err := openOutput(s.outputFiles, stdout, s.files...)
	if err != nil {
		return err
	}
	defer out.discard()

	rep := newTraceReport(s)
	stopped := rep.run(ctx, s, inputs, stderr)
	if errors.As(stopped, new(notTrace)) && !errors.As(stopped, new(failure)) {
		return stopped // stdin, of which nothing can be told before
	}
	rep.Environment.Complete = stopped == nil
	err = out.write(func(w io.Writer) error { return writeJSON(w, rep) }, rep.writeTable, func() *page.Report { return rep.page(ctx, s) })
	if err != nil {
		return failure{errors.Join(stopped, err)}
	}
	return stopped
}

// traceInput is a trace to be read.
type traceInput struct {
	name string
	size int64 // bytes, as it is packed; zero: not known
	file *traceSource
	from io.Reader // of stdin
}

// openTraces sees to it that all can be read and are of a known format before a long run
// begins.
func openTraces(s *traceSettings, stdin io.Reader) ([]*traceInput, error) {
	if err := temporaryFiles(); err != nil {
		return nil, err
	}
	var inputs []*traceInput
	for _, name := range s.files {
		if name == "-" {
			inputs = append(inputs, &traceInput{name: "<stdin>", from: stdin})
			continue
		}
		f, err := openTraceSource(name)
		if err != nil {
			return inputs, err
		}
		in := &traceInput{name: name, from: f, file: f}
		inputs = append(inputs, in)
		if f.once {
			continue
		}
		info, err := f.file.Load().Stat()
		if err != nil {
			return inputs, err
		}
		in.size = info.Size()
		r, err := in.open(s)
		if err == nil {
			r.Close()
		} else if !errors.As(err, new(*trace.Broken)) { // which is told when it is its turn
			return inputs, err
		}
		if _, err := f.file.Load().Seek(0, io.SeekStart); err != nil {
			return inputs, err
		}
	}
	return inputs, nil
}

// temporaryFiles returns why there can be none, into which traces are put.
func temporaryFiles() error {
	f, err := os.CreateTemp("", "terrace-trace-*")
	if err != nil {
		return fmt.Errorf("no temporary file, into which traces are put: %w: name a folder in $TMPDIR that can be written to", err)
	}
	f.Close()
	return os.Remove(f.Name())
}

// notTrace is the error of what is no trace of any format, or not of the one that was told.
type notTrace struct{ error }

func (e notTrace) Unwrap() error { return e.error }

// open returns a reader of the trace. The error is a [notTrace] or a [*trace.Broken].
func (in *traceInput) open(s *traceSettings) (*trace.Reader, error) {
	r, err := trace.NewReader(in.from, trace.Options{Name: in.name, Format: trace.Format(s.Format), Seed: s.Seed})
	if err == nil {
		return r, nil
	}
	if err = fmt.Errorf("%s: %w", in.name, err); !errors.As(err, new(*trace.Broken)) {
		err = notTrace{err}
	}
	return nil, err
}

func (in *traceInput) close() {
	if in.file != nil {
		in.file.Close()
	}
}
