package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// settings are what a comparison is run with. The zero value of a field never means
// a default: defaults are the flags'.
type settings struct {
	Keys          int           // how many keys there are
	Skew          float64       // zipf exponent
	Rate          float64       // reads a second in the open loop
	Seconds       float64       // of the open loop, as measured
	WarmupSeconds float64       // of the open loop before that
	ClosedSeconds float64       // of the closed loop
	TTL           time.Duration // how long a value is fresh
	Stale         time.Duration // how long past that swr may serve it
	Beta          float64       // of xfetch
	ValueSize     int           // bytes
	OriginLatency time.Duration // of one load
	Slow          time.Duration // above it a read counts as slow
	L1Entries     int           // capacity
	L2Entries     int           // capacity
	Concurrency   int           // reads under way at most
	Seed          uint64        // of the key sequence
	Combinations  []string      // such as "l1+l3"
	Policies      []string      // of policyNames
	Redis         string        // URL
	Memcached     []string      // HOST:PORT
	Config        []string      // documents whose caches are compared in place of Combinations
	Set           []string      // changes of the documents, PATH=VALUE

	Workload       string        // of workloadNames
	Trace          string        // file; in place of a workload
	Format         string        // of the trace, of trace.Formats; empty: told by the file
	Speed          float64       // of the trace's own times; zero: at Rate
	Burst          int           // reads of one key at once, of the burst workload
	Writes         float64       // share of operations
	Deletes        float64       // share of operations
	Goroutines     []int         // of further closed loops
	Origin         string        // of originNames, or a URL
	OriginSigma    float64       // of log-normal
	OriginCapacity int           // of limited
	OriginFails    float64       // share of the open loop in which failing fails
	StaleIfError   time.Duration // how long past fresh a value is served when its load fails

	outputFiles
}

// register binds the settings to flags, with their defaults. The defaults make one
// second hold two lives of a value, and L1 smaller than L2 smaller than what is read
// in one life, so that tiers and policies have something to differ by. The rate
// leaves room on two cores that the bench and the embedded Redis share with the cache:
// where reads queue for a processor it is the machine that is measured.
func (s *settings) register(f *pflag.FlagSet) {
	f.IntVar(&s.Keys, "keys", 400, "how many keys there are")
	f.Float64Var(&s.Skew, "skew", 1, "zipf exponent of the keys' popularity; 0: all alike")
	f.Float64Var(&s.Rate, "rate", 2500, "reads a second that the open loop starts")
	f.Float64Var(&s.Seconds, "seconds", 2, "how long the open loop is measured, for each row")
	f.Float64Var(&s.WarmupSeconds, "warmup-seconds", 0.5, "how long the open loop runs before that, from empty tiers")
	f.Float64Var(&s.ClosedSeconds, "closed-seconds", 0.25, "how long the closed loop runs, for throughput")
	f.DurationVar(&s.TTL, "ttl", 500*time.Millisecond, "how long a value is fresh")
	f.DurationVar(&s.Stale, "stale", 0, "how long past that swr may serve it (default: the ttl)")
	f.Float64Var(&s.Beta, "beta", 1, "xfetch's beta: above 1 refreshes earlier")
	f.IntVar(&s.ValueSize, "value-size", 256, "bytes of a value, at least 16")
	f.DurationVar(&s.OriginLatency, "origin-latency", 20*time.Millisecond, "how long the origin takes for one value")
	f.DurationVar(&s.Slow, "slow", 0, "count reads that take longer than this (default: half the origin latency)")
	f.IntVar(&s.L1Entries, "l1", 60, "capacity of l1 (lru), in entries")
	f.IntVar(&s.L2Entries, "l2", 200, "capacity of l2 (ristretto), in entries")
	f.IntVar(&s.Concurrency, "concurrency", 256, "reads under way at once, at most in the open loop, always in the closed one")
	f.Uint64Var(&s.Seed, "seed", 1, "of the sequence of keys")
	f.StringVar(&s.Workload, "workload", "zipf", "which keys are read: "+strings.Join(workloadNames, ", "))
	f.StringVar(&s.Trace, "trace", "", "replay the requests of this trace `FILE` instead, at the rate; the formats are those of the command trace")
	f.StringVar(&s.Format, "format", "", "of the trace (default: told by the file)")
	f.Float64Var(&s.Speed, "speed", 0, "replay the trace by its own times, so many times as fast: 1 is as it was recorded (default: at --rate)")
	f.IntVar(&s.Burst, "burst", 50, "reads of one key that come at once, in the workload burst")
	f.Float64Var(&s.Writes, "writes", 0, "share of the operations that write a key (default of mixed: 0.1)")
	f.Float64Var(&s.Deletes, "deletes", 0, "share of the operations that delete a key (default of mixed: 0.02)")
	f.IntSliceVar(&s.Goroutines, "goroutines", nil, "measure the closed loop with so many goroutines too, such as 1,4,64")
	f.StringVar(&s.Origin, "origin", "fixed", "how the origin answers: "+strings.Join(originNames, ", ")+"; or the URL of a real one, with {key} where the key is")
	f.Float64Var(&s.OriginSigma, "origin-sigma", 0.5, "spread of the log-normal origin: the deviation of its latency's logarithm")
	f.IntVar(&s.OriginCapacity, "origin-capacity", 20, "how many loads the limited origin runs at once; it refuses more")
	f.Float64Var(&s.OriginFails, "origin-fails", 0.2, "share of the open loop, in its middle, in which the failing origin fails")
	f.DurationVar(&s.StaleIfError, "stale-if-error", 0, "how long past fresh a value is served when its load fails")
	f.StringSliceVar(&s.Combinations, "combinations", []string{"l1", "l2", "l1+l2", "l1+l3", "l1+l2+l3"}, "tiers to compare")
	f.StringSliceVar(&s.Policies, "policies", slices.Clone(policyNames), "refresh policies to compare")
	f.StringVar(&s.Redis, "redis", "", "`URL` of a Redis to use as l3, such as redis://localhost:6379")
	f.StringSliceVar(&s.Memcached, "memcached", nil, "`HOST:PORT,…` of the memcached servers to use as l3")
	s.registerOutput(f)
}

// registerConfig binds what names documents to flags.
func (s *settings) registerConfig(f *pflag.FlagSet) {
	f.StringArrayVar(&s.Config, "config", nil, "compare the caches of this document, a `FILE` or - for stdin; may be repeated")
	registerSet(f, &s.Set)
}

func registerSet(f *pflag.FlagSet, to *[]string) {
	f.StringArrayVar(to, "set", nil, "change a field of the documents, `PATH=VALUE` such as products.refresh.policy=swr; may be repeated")
}

// documentsOwn are the flags for what documents say, with the fields that do.
var documentsOwn = []struct{ flag, field string }{
	{"combinations", "tiers"},
	{"policies", "refresh.policy"},
	{"ttl", "lifetime.ttl"},
	{"stale", "lifetime.stale_while_revalidate"},
	{"stale-if-error", "lifetime.stale_if_error"},
	{"beta", "refresh.beta"},
	{"l1", "tiers.TIER.capacity"},
	{"l2", "tiers.TIER.capacity"},
	{"redis", "tiers.TIER.url"},
	{"memcached", "tiers.TIER.servers"},
}

// validateConfig refuses what documents and flags would both say, or neither.
func (s *settings) validateConfig(f *pflag.FlagSet) error {
	if len(s.Config) == 0 {
		if f.Changed("set") {
			return errors.New("--set changes documents, and needs --config to name one")
		}
		return nil
	}
	for _, own := range documentsOwn {
		if f.Changed(own.flag) {
			return fmt.Errorf("--%s: with --config the document says this, in %s: leave the flag out", own.flag, own.field)
		}
	}
	for i, file := range s.Config {
		if file == "" {
			return errors.New("--config is empty: want the name of a file, or -")
		}
		if slices.Contains(s.Config[:i], file) {
			return fmt.Errorf("--config: %s is named twice", file)
		}
	}
	return nil
}

// fromFlags completes the settings and returns what is wrong with them.
func (s *settings) fromFlags(f *pflag.FlagSet) error {
	if err := s.complete(f); err != nil {
		return err
	}
	return s.validate()
}

// complete fills in the defaults that follow from other settings.
func (s *settings) complete(f *pflag.FlagSet) error {
	if !f.Changed("stale") {
		s.Stale = s.TTL
	}
	if !f.Changed("slow") {
		s.Slow = max(s.OriginLatency/2, time.Millisecond)
	}
	if s.Workload == "mixed" {
		if !f.Changed("writes") {
			s.Writes = 0.1
		}
		if !f.Changed("deletes") {
			s.Deletes = 0.02
		}
	}
	if s.Trace == "" {
		for _, flag := range []string{"speed", "format"} {
			if f.Changed(flag) {
				return fmt.Errorf("--%s is of a trace, and needs --trace to name one", flag)
			}
		}
	}
	if s.Trace == "-" {
		return errors.New("--trace -: want the name of a file, such as /dev/stdin")
	}
	if f.Changed("speed") {
		if f.Changed("rate") {
			return errors.New("--rate: with --speed the trace's own times say this: leave one of the two out")
		}
		if err := above("speed", s.Speed, 0, maxSpeed); err != nil {
			return err
		}
	}
	if s.Trace != "" {
		for _, flag := range []string{"workload", "keys", "skew", "writes", "deletes", "burst"} {
			if f.Changed(flag) {
				return fmt.Errorf("--%s: with --trace the trace says this: leave the flag out", flag)
			}
		}
	}
	if err := s.validateOutput(f); err != nil {
		return err
	}
	// An unset variable of a script is no wish for the default.
	for flag, empty := range map[string]bool{"trace": s.Trace == "", "format": s.Format == "", "origin": s.Origin == "", "redis": s.Redis == "", "memcached": len(s.Memcached) == 0} {
		if f.Changed(flag) && empty {
			return fmt.Errorf("--%s is empty: leave it out, or see --help for what it wants", flag)
		}
	}
	return nil
}

// Bounds that keep a slip of the finger from filling the memory or running for days.
const (
	maxKeys        = 10_000_000
	maxReads       = 50_000_000 // of one row
	maxSeconds     = 3600
	maxRate        = 1_000_000
	maxSpeed       = 1e12 // at 1e9 a second of the trace takes a nanosecond
	maxSkew        = 10
	maxEntries     = 10_000_000
	maxValueSize   = 1 << 20
	maxConcurrency = 10_000
	maxDuration    = time.Hour
)

// validate returns the first thing that is wrong, in terms of flags.
func (s *settings) validate() error {
	for _, err := range []error{
		between("keys", s.Keys, 1, maxKeys),
		between("skew", s.Skew, 0, maxSkew),
		above("rate", s.Rate, 0, maxRate),
		above("seconds", s.Seconds, 0, maxSeconds),
		between("warmup-seconds", s.WarmupSeconds, 0, maxSeconds),
		above("closed-seconds", s.ClosedSeconds, 0, maxSeconds),
		above("ttl", s.TTL, 0, maxDuration),
		above("stale", s.Stale, 0, maxDuration),
		above("beta", s.Beta, 0, 1000),
		between("value-size", s.ValueSize, leastValue, maxValueSize),
		between("origin-latency", s.OriginLatency, 0, time.Minute),
		above("slow", s.Slow, 0, maxDuration),
		between("l1", s.L1Entries, 1, maxEntries),
		between("l2", s.L2Entries, 1, maxEntries),
		between("concurrency", s.Concurrency, 1, maxConcurrency),
		s.validateWorkload(),
		s.validateOrigin(),
		s.validateReads(),
		s.validateCombinations(),
		s.validatePolicies(),
		s.validateServers(),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) validateReads() error {
	if s.Speed > 0 {
		return nil // the trace is asked
	}
	if n := s.Rate * s.Seconds; n < 1 {
		return fmt.Errorf("--rate %v for --seconds %v is not one read: raise either", s.Rate, s.Seconds)
	}
	if n := s.Rate * (s.Seconds + s.WarmupSeconds); n > maxReads {
		return fmt.Errorf("--rate %v for --seconds %v and the warm-up is %.0f reads a row: at most %d", s.Rate, s.Seconds, n, maxReads)
	}
	return nil
}

func (s *settings) validateCombinations() error {
	if len(s.Combinations) == 0 {
		return errors.New("--combinations: name at least one, such as l1+l3")
	}
	for i, c := range s.Combinations {
		if _, err := parseCombination(c); err != nil {
			return err
		}
		if slices.Contains(s.Combinations[:i], c) {
			return fmt.Errorf("--combinations: %s is named twice", c)
		}
	}
	return nil
}

func (s *settings) validatePolicies() error {
	if len(s.Policies) == 0 {
		return errors.New("--policies: name at least one of " + strings.Join(policyNames, ", "))
	}
	for i, p := range s.Policies {
		if !slices.Contains(policyNames, p) {
			return fmt.Errorf("--policies: there is no %q: want some of %s", p, strings.Join(policyNames, ", "))
		}
		if slices.Contains(s.Policies[:i], p) {
			return fmt.Errorf("--policies: %s is named twice", p)
		}
	}
	return nil
}

func (s *settings) validateServers() error {
	if (s.Redis != "" || len(s.Memcached) > 0) && !s.wantsRemote() {
		return errors.New("--redis and --memcached are for l3, which none of --combinations has")
	}
	return nil
}

type number interface {
	int | float64 | time.Duration
}

func between[N number](flag string, got, least, most N) error {
	if !(got >= least && got <= most) { // so written, NaN fails
		return fmt.Errorf("--%s %v: want %v to %v", flag, got, least, most)
	}
	return nil
}

func above[N number](flag string, got, limit, most N) error {
	if !(got > limit && got <= most) {
		return fmt.Errorf("--%s %v: want more than %v, up to %v", flag, got, limit, most)
	}
	return nil
}

// reads returns how many reads take the given time at the rate, at least one where
// the time is not zero.
func (s *settings) reads(seconds float64) int {
	return int(math.Ceil(s.Rate * seconds))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
