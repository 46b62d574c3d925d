package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier/storetest/servers"
)

// advised runs advise and returns what it says.
func advised(t *testing.T, args ...string) *advice {
	t.Helper()
	code, stdout, stderr := bench(t.Context(), append([]string{"advise", "--json", "-"}, args...)...)
	if code != exitOK {
		t.Fatalf("%v: exit code %d, stderr %q", args, code, stderr)
	}
	a := new(advice)
	if err := json.Unmarshal([]byte(stdout), a); err != nil {
		t.Fatal(err)
	}
	if a.Advice == nil || !a.Environment.Complete {
		t.Fatalf("no advice in %s", stdout)
	}
	return a
}

// holds checks that validate accepts the document without a warning, and that the trace
// has the promised hits within 2 points.
func holds(t *testing.T, a *advice, document, file string) {
	t.Helper()
	code, stdout, stderr := bench(t.Context(), "validate", document)
	if code != exitOK || stderr != "" {
		t.Errorf("validate: exit code %d, %q, for\n%s", code, stderr, a.Advice.Config)
	}
	if !strings.Contains(stdout, "advised: ") {
		t.Errorf("validate says %q", stdout)
	}
	// Several, as some evictions draw by chance.
	const replays = 5
	mean := 0.0
	for range replays {
		code, stdout, stderr = bench(t.Context(), "trace", "--json", "-", "--tiers", a.Advice.argument(), file)
		if code != exitOK {
			t.Fatalf("trace: exit code %d, %q", code, stderr)
		}
		for _, r := range parseTrace(t, stdout).Rows {
			if r.Policy != optimum {
				mean += r.HitRatio / replays
			}
		}
	}
	if math.Abs(mean-a.Advice.HitRatio) > 0.02 {
		t.Errorf("%s: promised %.4f, replays have %.4f", a.Advice.argument(), a.Advice.HitRatio, mean)
	}
}

// TestAdviseKeepsItsPromise: what is advised for public traces is a good document, and does
// what it says.
func TestAdviseKeepsItsPromise(t *testing.T) {
	root := filepath.Join("..", "..", "shared", "traces")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("the public cache traces are not there: no folder %s", root)
	}
	for _, test := range []struct {
		name string
		args []string
	}{
		{"lirs/multi1.trace.gz", []string{"--memory", "1MiB", "--policies", "lru,2q,w-tinylfu"}},
		{"lirs/cs.trace.gz", []string{"--memory", "1MiB", "--goal", "origin", "--policies", "arc,sieve"}},
		{"lirs/multi1.trace.gz", []string{"--memory", "1MiB", "--remote-latency", "500us", "--max-stale", "10s", "--policies", "lru,sieve"}},
	} {
		file, document := filepath.Join(root, test.name), filepath.Join(t.TempDir(), "a.yaml")
		a := advised(t, append(test.args, "--config", document, file)...)
		holds(t, a, document, file)
	}
}

// A longer trace is sampled, and the promise holds all the same.
func TestAdviseSamples(t *testing.T) {
	var b strings.Builder
	state := uint64(1)
	for range 260_000 { // a popularity that falls with the rank, over 40,000 keys
		state = state*6364136223846793005 + 1442695040888963407
		u := float64(state>>11) / (1 << 53)
		fmt.Fprintf(&b, "k%d\n", int(math.Pow(40_000, u)))
	}
	file, document := traceFile(t, "long.txt", b.String()), filepath.Join(t.TempDir(), "a.yaml")
	a := advised(t, "--policies", "lru,sieve", "--goal", "origin", "--memory", "16MiB", "--sample", "0.2", "--verify", "--config", document, file)
	if !a.Sample.Sampled || a.Sample.Replayed*3 > a.Sample.Full {
		t.Errorf("sample: %+v", a.Sample)
	}
	if a.Advice.FullHitRatio == nil {
		t.Error("not verified")
	}
	for _, r := range a.Rows {
		if !r.Sampled {
			t.Errorf("%+v is not marked as sampled", r)
		}
	}
	holds(t, a, document, file)
}

// What a remote tier takes is measured, and requests can be described.
func TestAdviseMeasuresRedis(t *testing.T) {
	redis := servers.Redis(t)
	a := advised(t, "--redis", "redis://"+redis.Addr(), "--keys", "2000", "--requests", "20000", "--policies", "lru", "--memory", "1MiB")
	if a.Remote == nil || !a.Remote.Measured || a.Remote.Gets == 0 || !(a.Remote.P99 > 0) {
		t.Errorf("remote: %+v", a.Remote)
	}
	if len(a.Advice.Tiers) != 2 || !strings.Contains(a.Advice.Config, "backend: redis") {
		t.Errorf("advice for a slow origin beside a fast Redis:\n%s", a.Advice.Config)
	}
}

// No document has a password.
func TestBareURL(t *testing.T) {
	if got, want := bareURL("redis://user:secret@host:1/2?password=secret"), "redis://host:1/2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAdviseChooses(t *testing.T) {
	slow := &alternative{Tiers: []adviceTier{{Name: "l1"}}, HitRatio: 0.7, P99: 2, Mean: 1, Cost: 1, Memory: 1}
	fast := &alternative{Tiers: []adviceTier{{Name: "l1"}, {Name: "l2"}}, HitRatio: 0.8, P99: 1, Mean: 1, Cost: 3, Memory: 9}
	most := &alternative{Tiers: []adviceTier{{Name: "l1"}, {Name: "l2"}}, HitRatio: 0.9, P99: 2, Mean: 1, Cost: 5, Memory: 9}
	same := &alternative{Tiers: []adviceTier{{Name: "l1"}, {Name: "l2"}}, HitRatio: 0.9, P99: 2, Mean: 1, Cost: 5, Memory: 8}
	for goal, want := range map[string]*alternative{goalP99: fast, goalOrigin: same, goalCost: slow} {
		s := &adviseSettings{Goal: goal}
		if got := s.choose([]*alternative{slow, fast, most, same}); got != want {
			t.Errorf("%s: got %+v, want %+v", goal, got, want)
		}
	}
	for _, test := range []struct {
		s    adviseSettings
		want string
	}{
		{adviseSettings{MaxStale: time.Second, OriginLatency: time.Second, TTL: time.Minute}, "swr"},
		{adviseSettings{Goal: goalP99, OriginLatency: 50 * time.Millisecond, TTL: time.Minute}, "xfetch"},
		{adviseSettings{Goal: goalOrigin, OriginLatency: 50 * time.Millisecond, TTL: time.Minute}, "fixed"},
		{adviseSettings{Goal: goalP99, OriginLatency: 10 * time.Second, TTL: time.Minute}, "fixed"},
	} {
		if got := test.s.refresh(); got.Policy != test.want || got.Reason == "" {
			t.Errorf("%+v: got %+v, want %s", test.s, got, test.want)
		}
	}
}

// With room for a few entries each row and alternative has room for one at least, and is there
// once.
func TestAdviseWithRoomForFew(t *testing.T) {
	a := advised(t, "--memory", "4KiB", file(t, "keys.plain", "a\nb\na\nc\na\nb\n"))
	seen := make(map[string]bool)
	for _, r := range a.Rows {
		name := fmt.Sprint(r.Policy, r.Size)
		if r.Size < 1 || r.Size > 3 || seen[name] {
			t.Errorf("%s of %d entries: want 1 to 3, each once", r.Policy, r.Size)
		}
		seen[name] = true
	}
	for _, c := range a.Alternatives {
		if seen[c.argument()] || c.Tiers[0].Size < 1 {
			t.Errorf("%s: want each once, with room", c.argument())
		}
		seen[c.argument()] = true
	}
}

func TestAdviseRefuses(t *testing.T) {
	both := filepath.Join(t.TempDir(), "advice")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--goal", "fun"}, "--goal"},
		{[]string{"--goal", "cost"}, "--origin-price"},
		{[]string{"--memory", "500"}, "--memory"},
		{[]string{"--policies", "lru,lru"}, "twice"},
		{[]string{"--remote-price", "1"}, "no remote tier"},
		{[]string{"--zipf", "1", "x.trace"}, "--zipf"},
		{[]string{"x", "y"}, "2 traces"},
		{[]string{"--config", "-", "--json", "-"}, "stdout"},
		{[]string{"--config", both, "--html", both}, "--html and --config are the same file"},
		{[]string{"--config", both, "--json", both}, "--json and --config are the same file"},
		{[]string{"/no/such/file"}, "/no/such/file"},
		{[]string{"--name", "a b"}, "--name"},
	} {
		code, _, stderr := bench(t.Context(), append([]string{"advise"}, test.args...)...)
		if code != exitUsage {
			t.Errorf("%v: exit code %d", test.args, code)
		}
		wantOneLine(t, stderr, test.want)
	}
}
