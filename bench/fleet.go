package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terracecache/terrace/bench/internal/page"
)

const fleetHelp = `Runs itself as several processes that share one real Redis or memcached, and tells what
their caches do together: how often the origin is asked, what is stale and for how long,
how long callers wait. Each scenario runs without and with the lease (one process at a
time loads a key), and with Redis also without and with the bus (processes tell each other
what they write).

  cold        all callers of all processes ask for all keys at once, and nobody has them
  invalidate  one process writes all keys, while the callers of all go on reading them
  cut         the connections of one process to the server are cut for a while, and it and
              another write meanwhile
  kill        a process is killed (kill -9) in the middle of loading all keys, which the
              others wait for
  history     all processes read, set, delete and expire few keys at random, while the
              connections of each to the server and the bus fail at random; what each of them
              saw is checked against what is promised, and a violation is exit code 1

Without --redis and --memcached it starts a server of its own, on a free port, and ends it
afterwards. Keys lie under a random prefix, and are removed afterwards.`

const fleetExample = `  go run ./bench fleet
  go run ./bench fleet --scenario cold --backend memcached --processes 8
  go run ./bench fleet --scenario kill --lease-life 500ms --redis redis://localhost:6379
  go run ./bench fleet --scenario history --seed 7 --operations 20000
  go run ./bench fleet --json - | jq '.rows[] | {scenario, lease, origin_calls}'`

// fleetSettings are what a fleet is run with.
type fleetSettings struct {
	Processes     int
	Callers       int // of each process
	Keys          int
	OriginLatency time.Duration
	Scenario      string // of fleetScenarios, or "all"
	Backend       string // "redis" or "memcached"
	Redis         string
	Memcached     []string
	LeaseLife     time.Duration
	L1TTL         time.Duration
	Seed          uint64
	Operations    int // of a history
	Converge      time.Duration
	History       string // file
	outputFiles

	scenarios []scenario // those of Scenario
	histories *historyFile
}

var backendNames = []string{"redis", "memcached"}

func (s *fleetSettings) register(f *pflag.FlagSet) {
	f.IntVar(&s.Processes, "processes", 4, "how many processes there are")
	f.IntVar(&s.Callers, "callers", 64, "how many callers each process has")
	f.IntVar(&s.Keys, "keys", 100, "how many keys there are")
	f.DurationVar(&s.OriginLatency, "origin-latency", 200*time.Millisecond, "how long the origin takes for one value")
	f.StringVar(&s.Scenario, "scenario", "all", "what to run: "+strings.Join(scenarioNames(), ", ")+" or all")
	f.StringVar(&s.Backend, "backend", "redis", "what the processes share: redis or memcached")
	f.StringVar(&s.Redis, "redis", "", "`URL` of a Redis to use, such as redis://localhost:6379 (default: one is started)")
	f.StringSliceVar(&s.Memcached, "memcached", nil, "`HOST:PORT,…` of the memcached servers to use (default: one is started)")
	f.DurationVar(&s.LeaseLife, "lease-life", time.Second, "how long a process that has died keeps others from loading")
	f.DurationVar(&s.L1TTL, "l1-ttl", time.Second, "how long a process keeps a value in its own memory")
	f.Uint64Var(&s.Seed, "seed", 1, "of the order in which keys are read, and of what a history does")
	f.DurationVar(&s.Converge, "converge", 100*time.Millisecond, "in a history: how long after a write others may read what was before it while the bus works")
	f.IntVar(&s.Operations, "operations", 10_000, "how many operations a history has at least")
	f.StringVar(&s.History, "history", "", "write each recorded history to this `FILE`, one JSON object a line")
	s.registerOutput(f)
}

const (
	// maxBurst bounds the reads that wait at one time, over the fleet.
	maxBurst = 200_000
	// loadTimeout is how long the processes let a load take.
	loadTimeout = time.Minute
	// maxFleetTime bounds the settings that a scenario waits for.
	maxFleetTime = 30 * time.Second
)

// fromFlags completes the settings, and returns what is wrong with them.
func (s *fleetSettings) fromFlags(f *pflag.FlagSet) error {
	for _, name := range []string{"redis", "memcached", "history"} {
		if flag := f.Lookup(name); flag.Changed && (flag.Value.String() == "" || flag.Value.String() == "[]") {
			return fmt.Errorf("--%s is empty: give it a value, or leave it out", name)
		}
	}
	if err := s.validateOutput(f); err != nil {
		return err
	}
	switch {
	case s.Redis != "" && len(s.Memcached) > 0:
		return errors.New("--redis and --memcached: a fleet shares one of them: leave the other out")
	case f.Changed("backend") && s.Backend == "redis" && len(s.Memcached) > 0,
		f.Changed("backend") && s.Backend == "memcached" && s.Redis != "":
		return fmt.Errorf("--backend %s does not go with the server that is named", s.Backend)
	case len(s.Memcached) > 0:
		s.Backend = "memcached"
	}
	if !slices.Contains(backendNames, s.Backend) {
		return fmt.Errorf("--backend: there is no %q: want redis or memcached", s.Backend)
	}
	for _, sc := range fleetScenarios {
		if s.Scenario == "all" || s.Scenario == sc.name {
			s.scenarios = append(s.scenarios, sc)
		}
	}
	if len(s.scenarios) == 0 {
		return fmt.Errorf("--scenario: there is no %q: want %s or all", s.Scenario, strings.Join(scenarioNames(), ", "))
	}
	if s.History != "" && !slices.ContainsFunc(s.scenarios, func(sc scenario) bool { return sc.name == "history" }) {
		return fmt.Errorf("--history: nothing is recorded in %s: want --scenario history or all", s.Scenario)
	}
	for _, err := range []error{
		between("processes", s.Processes, 2, 64),
		between("callers", s.Callers, 1, 10_000),
		between("keys", s.Keys, 1, 10_000),
		between("origin-latency", s.OriginLatency, time.Millisecond, maxFleetTime),
		between("lease-life", s.LeaseLife, 50*time.Millisecond, maxFleetTime),
		between("operations", s.Operations, 100, 1_000_000),
		between("converge", s.Converge, time.Millisecond, maxFleetTime),
		between("l1-ttl", s.L1TTL, 50*time.Millisecond, maxFleetTime),
	} {
		if err != nil {
			return err
		}
	}
	if n := s.Processes * s.Callers * s.Keys; n > maxBurst {
		return fmt.Errorf("--processes %d × --callers %d × --keys %d is %d reads at once: at most %d", s.Processes, s.Callers, s.Keys, n, maxBurst)
	}
	return nil
}

func fleetCommand(stdout, stderr io.Writer) *cobra.Command {
	s := new(fleetSettings)
	return withSettings(&cobra.Command{
		Use:     "fleet",
		Short:   "Run several processes on one server: origin calls, stale reads, waits",
		Long:    fleetHelp,
		Example: fleetExample,
	}, s, func(ctx context.Context) error { return runFleet(ctx, s, stdout, stderr) })
}

// runFleet runs all scenarios and writes the report, or what of it was done.
func runFleet(ctx context.Context, s *fleetSettings, stdout, stderr io.Writer) error {
	out, err := openOutput(s.outputFiles, stdout)
	if err != nil {
		return err
	}
	defer out.discard()
	if s.histories, err = openHistoryFile(s.History, s.JSON, s.HTML); err != nil {
		return err
	}
	defer s.histories.close()
	server, err := fleetServerOf(ctx, s)
	if ctx.Err() != nil {
		if err == nil {
			server.stop()
		}
		return errInterrupted
	}
	if err != nil {
		return err
	}
	defer server.stop()

	rep := newFleetReport(s, server)
	if _, err := server.addresses(); err != nil {
		cuts := slices.DeleteFunc(slices.Clone(s.scenarios), func(sc scenario) bool { return !sc.cuts })
		if s.Scenario != "all" && len(cuts) > 0 {
			return err
		}
		s.scenarios = slices.DeleteFunc(s.scenarios, func(sc scenario) bool { return sc.cuts })
		for _, sc := range cuts {
			rep.note("no %s: %v", sc.name, err)
		}
	}
	stopped := rep.run(ctx, s, server, stderr)
	if len(rep.Rows) == 0 {
		return stopped
	}
	rep.Environment.Complete = stopped == nil
	err = out.write(func(w io.Writer) error { return writeJSON(w, rep) }, func(w io.Writer) error { return rep.writeTable(w, s) },
		func() *page.Report { return rep.page(ctx, s) })
	if err != nil {
		return failure{errors.Join(stopped, err)}
	}
	if n := rep.violations(); n > 0 && stopped == nil {
		return failure{fmt.Errorf("history: %d violations of what is promised, which are in the report's notes", n)}
	}
	return stopped
}

// run adds all rows to the report.
func (r *fleetReport) run(ctx context.Context, s *fleetSettings, server *fleetServer, stderr io.Writer) error {
	var rows []fleetRow
	buses := []bool{false}
	if s.Backend == "redis" {
		buses = append(buses, true) // memcached has none
	}
	for _, sc := range s.scenarios {
		for _, lease := range []bool{false, true} {
			for _, bus := range buses {
				row := fleetRow{
					Scenario: sc.name, Backend: s.Backend, Lease: lease, Bus: bus,
					Processes: s.Processes, Callers: s.Callers, Keys: s.Keys,
				}
				if sc.keys > 0 {
					row.Keys, row.Callers = min(row.Keys, sc.keys), min(row.Callers, sc.callers)
				}
				rows = append(rows, row)
			}
		}
	}
	p := newProgress(stderr, len(rows))
	defer p.end()
	for i, row := range rows {
		p.at(i, row.label())
		row, err := watched(ctx, server.remote, func(ctx context.Context) (fleetRow, error) {
			f := &fleet{settings: s, server: server, row: row, note: r.note}
			err := f.run(ctx)
			return f.row, err
		})
		if err != nil {
			return stoppedBy(ctx, row.label(), err)
		}
		r.Rows = append(r.Rows, row)
	}
	return nil
}
