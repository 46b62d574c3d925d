package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/tier/storetest/servers"
)

const (
	fewProcesses = 3
	fewKeys      = 12
	fewCallers   = 8
	shortLoad    = 80 * time.Millisecond
	shortLife    = 400 * time.Millisecond
	shortL1      = 400 * time.Millisecond
)

// few are flags of a small fleet.
var few = []string{
	"--processes", fmt.Sprint(fewProcesses), "--keys", fmt.Sprint(fewKeys), "--callers", fmt.Sprint(fewCallers),
	"--origin-latency", shortLoad.String(), "--lease-life", shortLife.String(), "--l1-ttl", shortL1.String(),
}

// fleetOf runs a small fleet, and returns its rows: without and with the lease, on Redis
// each without and with the bus.
func fleetOf(ctx context.Context, t *testing.T, args ...string) []fleetRow {
	t.Helper()
	code, stdout, stderr := bench(ctx, slices.Concat([]string{"fleet", "--json", "-"}, few, args)...)
	if code != exitOK || stderr != "" {
		t.Fatalf("got exit code %d, stderr %q", code, stderr)
	}
	r := parseFleet(t, stdout)
	var ran []string
	for _, row := range r.Rows {
		ran = append(ran, fmt.Sprint(row.Backend, " ", row.Lease, " ", row.Bus))
		if row.Processes != fewProcesses || row.Keys != fewKeys || row.Callers != fewCallers {
			t.Errorf("row: %+v", row)
		}
		if row.Failed != 0 {
			t.Errorf("%s: %d calls failed: %v", row.label(), row.Failed, r.Environment.Notes)
		}
	}
	got := strings.Join(ran, ", ")
	if got != "redis false false, redis false true, redis true false, redis true true" && got != "memcached false false, memcached true false" {
		t.Errorf("rows: got %s", got)
	}
	if !r.Environment.Complete {
		t.Errorf("environment: got %+v", r.Environment)
	}
	return r.Rows
}

func parseFleet(t *testing.T, text string) (r fleetReport) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || d.More() {
		t.Fatalf("not a report: %v\n%s", err, text)
	}
	return r
}

// onEach runs the test with a server of each kind.
func onEach(t *testing.T, test func(t *testing.T, server ...string)) {
	t.Run("redis", func(t *testing.T) { test(t, "--redis", "redis://"+servers.Redis(t).Addr()) })
	t.Run("memcached", func(t *testing.T) {
		test(t, "--memcached", servers.Memcached(t).Addr()+","+servers.Memcached(t).Addr())
	})
}

// With the lease each cold key is loaded once, whatever the number of processes.
func TestFleetCold(t *testing.T) {
	onEach(t, func(t *testing.T, server ...string) {
		for _, row := range fleetOf(t.Context(), t, append(server, "--scenario", "cold")...) {
			checkCalls(t, row, fewKeys)
			if row.LongestWait < shortLoad.Seconds() {
				t.Errorf("%s: nobody waited for a load: %v s", row.label(), row.LongestWait)
			}
		}
	})
}

// checkCalls checks the origin calls of a scenario in which all ask for all keys.
func checkCalls(t *testing.T, row fleetRow, leased int) {
	t.Helper()
	if got := row.OriginCalls; row.Lease && got != leased {
		t.Errorf("%s: got %d origin calls, want %d", row.label(), got, leased)
	}
	// A process that comes late finds what another has stored.
	if got := row.OriginCalls; !row.Lease && (got < fewKeys || got > fewProcesses*fewKeys) {
		t.Errorf("%s: got %d origin calls, want %d to %d", row.label(), got, fewKeys, fewProcesses*fewKeys)
	}
}

// A holder of leases that is killed costs one more load of each of its keys.
func TestFleetKill(t *testing.T) {
	onEach(t, func(t *testing.T, server ...string) {
		for _, row := range fleetOf(t.Context(), t, append(server, "--scenario", "kill")...) {
			checkCalls(t, row, 2*fewKeys)
			// They wait for the dead holder's lease to end, and then for one load; a second
			// life of a lease would be too much.
			if got := row.LongestWait; row.Lease && (got < shortLoad.Seconds() || got > (shortLife+shortLoad+shortLife).Seconds()) {
				t.Errorf("%s: somebody waited %v s, want about %v at most", row.label(), got, shortLife+shortLoad)
			}
		}
	})
}

// Without a bus the other processes read what is stale until their L1 lets go of it; with
// one they learn of it.
func TestFleetInvalidate(t *testing.T) {
	const l1 = 2 * time.Second
	onEach(t, func(t *testing.T, server ...string) {
		for _, row := range fleetOf(t.Context(), t, append(server, "--scenario", "invalidate", "--l1-ttl", l1.String())...) {
			if row.Bus {
				if want := l1 / 4; row.Converge > want.Seconds() {
					t.Errorf("%s: converged in %v s, want far less than %v", row.label(), row.Converge, want)
				}
			} else {
				checkConverged(t, row, l1)
			}
			if most := fewProcesses * fewKeys; row.OriginCalls < fewKeys/2 || row.OriginCalls > most {
				t.Errorf("%s: got %d origin calls for %d deletions", row.label(), row.OriginCalls, fewKeys/2)
			}
		}
	})
}

// After a cut the writes of the process that was cut off arrive, and all converge.
func TestFleetCut(t *testing.T) {
	onEach(t, func(t *testing.T, server ...string) {
		const probe = time.Second // of a tier's breaker, before a tier is asked again
		for _, row := range fleetOf(t.Context(), t, append(server, "--scenario", "cut")...) {
			checkConverged(t, row, probe+shortL1)
		}
	})
}

// checkConverged checks that there were stale reads, and none once the time was over.
func checkConverged(t *testing.T, row fleetRow, within time.Duration) {
	t.Helper()
	const slack = 500 * time.Millisecond // for a busy machine
	if row.StaleReads == 0 || row.Converge <= 0 {
		t.Errorf("%s: nothing stale was read in other processes' L1: %+v", row.label(), row)
	}
	if row.Converge > (within + slack).Seconds() {
		t.Errorf("%s: converged in %v s, want %v", row.label(), row.Converge, within)
	}
}

// The fields of a row are what other programs read.
func TestFleetJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fleet.json")
	code, stdout, stderr := bench(t.Context(), slices.Concat([]string{"fleet", "--json", file, "--scenario", "cold"}, few)...)
	if code != exitOK || stderr != "" {
		t.Fatalf("got exit code %d, %q", code, stderr)
	}
	for _, want := range []string{"origin calls", "longest wait", "started for this run", "\ncold        on    off"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	var document struct {
		Environment map[string]any
		Rows        []map[string]any
	}
	if err := json.Unmarshal([]byte(read(t, file)), &document); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"backend", "bus", "callers", "converge_seconds", "failed", "keys", "lease", "longest_wait_seconds",
		"origin_calls", "processes", "scenario", "stale_reads",
	}
	for _, row := range document.Rows {
		if got := keysOf(row); !slices.Equal(got, want) {
			t.Errorf("fields: got %v, want %v", got, want)
		}
	}
	if len(document.Rows) != 4 {
		t.Errorf("got %d rows", len(document.Rows))
	}
}

// A fleet leaves nothing in a server of the user's, and touches nothing there.
func TestFleetLeavesNoKeys(t *testing.T) {
	redis := servers.Redis(t)
	client := goredis.NewClient(&goredis.Options{Addr: redis.Addr()})
	defer client.Close()
	if err := client.Set(t.Context(), "terrace-bench:another's", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	fleetOf(t.Context(), t, "--redis", "redis://"+redis.Addr(), "--scenario", "invalidate")
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 || keys[0] != "terrace-bench:another's" {
		t.Errorf("keys afterwards: got %v, %v, want only another's", keys, err)
	}
}

func TestFleetWithoutAServerToStart(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for backend, says := range map[string]string{"redis": "redis-server is not installed", "memcached": "memcached is not installed"} {
		code, stdout, stderr := bench(t.Context(), "fleet", "--backend", backend)
		if code != exitUsage || stdout != "" {
			t.Errorf("got exit code %d, %q", code, stdout)
		}
		wantOneLine(t, stderr, says, "--"+backend)
	}
}

// A file for histories is looked at before anything runs, as those of reports are.
func TestFleetHistoryFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "histories")
	for args, says := range map[string]string{
		"--scenario history --history " + dir:                                                                       "--history: cannot write " + dir,
		"--scenario history --history " + filepath.Join(dir, "none", "x"):                                           "--history: cannot write",
		"--scenario all --history=":                                                                                 "--history is empty",
		"--scenario cold --history " + file:                                                                         "want --scenario history or all",
		"--scenario history --redis redis://127.0.0.1:1 --history " + file:                                          "does not answer",
		"--scenario history --history " + file + " --json " + filepath.Join(dir, "report") + " --keys 0":            "--keys 0",
		"--scenario history --history " + filepath.Join(dir, ".", "same") + " --json " + filepath.Join(dir, "same"): "the report",
	} {
		code, stdout, stderr := bench(t.Context(), append([]string{"fleet"}, strings.Fields(args)...)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%s: got exit code %d, stdout %q", args, code, stdout)
		}
		wantOneLine(t, stderr, says)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("files are left: %v", files)
	}
}

func TestFleetServerDiesInTheMiddle(t *testing.T) {
	redis := servers.Redis(t)
	// In the kill of one process, whose others wait long.
	code, stdout, stderr := benchOnTerminal(t.Context(), onStep("[3/4]", 2*time.Second, redis.Kill), slices.Concat([]string{"fleet"}, few,
		[]string{"--redis", "redis://" + redis.Addr(), "--scenario", "kill", "--lease-life", "20s"})...)
	if code != exitFailure {
		t.Errorf("got exit code %d, want %d", code, exitFailure)
	}
	wantOneLine(t, stderr, "kill, lease on", redis.Addr(), "does not answer")
	if !strings.Contains(stdout, "\nkill        off") {
		t.Errorf("the row that was done is not printed:\n%s", stdout)
	}
}
