package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terracecache/terrace/bench/internal/curve"
	"github.com/terracecache/terrace/bench/internal/replay"
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
	const replays = 3
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
		{"lirs/multi1.trace.gz", []string{"--memory", "1MiB", "--policies", "lru,2q"}},
		{"lirs/cs.trace.gz", []string{"--memory", "1MiB", "--goal", "origin", "--policies", "arc,sieve"}},
		{"lirs/multi1.trace.gz", []string{"--memory", "1MiB", "--remote-latency", "500us", "--max-stale", "10s", "--policies", "lru,2q"}},
	} {
		file, document := filepath.Join(root, test.name), filepath.Join(t.TempDir(), "a.yaml")
		a := advised(t, append(test.args, "--config", document, file)...)
		holds(t, a, document, file)
	}
}

// A longer trace is sampled, a tenth of the work is not passed, and the promise holds all the
// same.
func TestAdviseSamples(t *testing.T) {
	var b strings.Builder
	state := uint64(1)
	for range 260_000 { // a popularity that falls with the rank, over 80,000 keys
		state = state*6364136223846793005 + 1442695040888963407
		u := float64(state>>11) / (1 << 53)
		fmt.Fprintf(&b, "k%d\n", int(math.Pow(80_000, u)))
	}
	file, document := traceFile(t, "long.txt", b.String()), filepath.Join(t.TempDir(), "a.yaml")
	a := advised(t, "--policies", "lru,sieve", "--goal", "origin", "--memory", "16MiB", "--verify", "--config", document, file)
	if !a.Sample.Sampled || a.Sample.Replayed*10 > a.Sample.Full || a.Sample.Over != "" {
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

// TestWorkIsPlanned: whatever is compared, a part of the planned share is replayed no more often than a
// tenth of the work of full replays allows, and no smaller part is planned than has to be.
func TestWorkIsPlanned(t *testing.T) {
	for n := range len(replay.Policies) {
		for _, remote := range []time.Duration{0, time.Millisecond} {
			for _, budget := range []int64{100, 3000, 50_000, 1 << 40} {
				s := &adviseSettings{Goal: goalP99, Policies: replay.Policies[n:], RemoteLatency: remote}
				a := &advice{Environment: adviceEnvironment{Budget: budget, RemoteEntries: 1000}, Trace: traceOfRows{Keys: 1_000_000, Requests: 10_000_000}}
				sizes, w := a.plan(s)
				a.alternatives(s, sizes)
				passes := 1 + len(a.jobs(s, nil, sizes)) + w.chance
				share := w.most * float64(passes) / float64(len(a.Rows)+a.multiple())
				if share > 0.1+1e-9 || share < 0.05 {
					t.Errorf("%v, remote %v, %d entries: %.3f of the work is planned, %+v", s.Policies, remote, budget, share, w)
				}
				if len(sizes) > 1 && float64(sizes[0])*w.most < 100 {
					t.Errorf("%v, %d entries: a part of %.4f is planned for a store of %d", s.Policies, budget, w.most, sizes[0])
				}
			}
		}
	}
}

// estimates returns those of hit ratios, half in each of two tiers.
func estimates(hits ...float64) (all []curve.Estimate) {
	for _, h := range hits {
		all = append(all, curve.Estimate{HitRatio: h, Tiers: []float64{h / 2, h / 2}})
	}
	return all
}

// TestChanceIsTold: of replays that are near each other the middle is promised, of others what
// is near most of them is named, and those are given up for something steady, unless it is far worse.
func TestChanceIsTold(t *testing.T) {
	two := []adviceTier{{Name: "l1", Policy: "lru"}, {Name: "l2", Policy: "sieve"}}
	near := &alternative{Tiers: slices.Clone(two)}
	near.settle(estimates(0.53, 0.50, 0.53, 0.53), false)
	if near.unsteady() || !near.isCertain() || math.Abs(near.HitRatio-0.515) > 1e-9 || math.Abs(near.Tiers[1].HitRatio-0.2575) > 1e-9 {
		t.Errorf("near each other: %+v, want the middle", near)
	}
	hits := slices.Repeat([]float64{0.56, 0.55}, 50)
	hits[7] = 0.4
	far := &alternative{Tiers: slices.Clone(two)}
	far.settle(estimates(hits...), false)
	if !far.unsteady() || math.Abs(far.HitRatio-0.555) > 1e-9 || *far.Least != 0.4 || *far.Most != 0.56 {
		t.Errorf("one far off: %+v, want the middle of the others", far)
	}
	split := &alternative{Tiers: slices.Clone(two)}
	if split.settle(estimates(0.7, 0.5, 0.5, 0.51, 0.65, 0.6), false); math.Abs(split.HitRatio-0.505) > 1e-9 {
		t.Errorf("in parts: %+v, want the middle of the largest", split)
	}
	s := &adviseSettings{Goal: goalOrigin}
	if got := new(advice).chooseSteady(s, []*alternative{far, near}); got != near {
		t.Errorf("got %+v, want the steady one", got)
	}
	useless := &alternative{Tiers: two[:1], HitRatio: 0.1}
	if got := new(advice).chooseSteady(s, []*alternative{far, useless}); got != far {
		t.Errorf("got %+v, want what has hits", got)
	}
	part := &advice{Alternatives: []*alternative{far, useless}, Sample: adviceSample{Sampled: true}}
	r := newRecommendation(s, part, far)
	if !strings.Contains(r.Why, "no promise") || !strings.Contains(r.Config, "40.00 to 56.00 %") {
		t.Errorf("it is not told:\n%s\n%s", r.Why, r.Config)
	}
}

// TestSeedIsKept: what differs by seed alone is promised as it is with the one that was given, and
// how far others are apart is told. It is given up for something steady that is not worse with
// each of them, and advised where else nothing could be promised.
func TestSeedIsKept(t *testing.T) {
	of := func(policy string, hits ...float64) *alternative {
		c := &alternative{Tiers: []adviceTier{{Name: "l1", Policy: "lru", Size: 1}, {Name: "l2", Policy: policy, Size: 9}}, HitRatio: hits[0], Mean: 1}
		if len(hits) > 1 {
			c.settle(estimates(hits...), new(advice).exact(c))
		}
		return c
	}
	apart := of("sieve", 0.30, 0.28, 0.33)
	if apart.HitRatio != 0.30 || *apart.Least != 0.28 || *apart.Most != 0.33 {
		t.Errorf("got %+v, want what was replayed first, and how far apart they are", apart)
	}
	random := of("w-tinylfu", 0.33, 0.29, 0.25)
	if random.HitRatio == 0.33 {
		t.Errorf("got %+v, want the middle", random)
	}
	s := &adviseSettings{Goal: goalOrigin}
	for name, test := range map[string]struct {
		all  []*alternative
		want int
	}{
		"steady, and as good with some seed": {[]*alternative{apart, of("lru", 0.29)}, 1},
		"steady, and worse with each":        {[]*alternative{apart, of("lru", 0.27)}, 0},
		"nothing steady":                     {[]*alternative{random, apart, of("lru", 0.1)}, 1},
		"nothing steady, nor as good":        {[]*alternative{random, of("lru", 0.1)}, 0},
	} {
		if got := new(advice).chooseSteady(s, test.all); got != test.all[test.want] {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	s.Seed, s.file = 3, "x.trace"
	r := newRecommendation(s, &advice{Alternatives: []*alternative{apart}}, apart)
	if !r.Exact || !strings.Contains(r.Why, "this seed alone") || !strings.Contains(r.Config, "28.00 to 33.00 %") || !strings.Contains(r.Replay, "--seed 3 x.trace") {
		t.Errorf("it is not told:\n%s\n%s\n%s", r.Why, r.Config, r.Replay)
	}
}

// TestAdviseIsWhatTraceHas: of what does not draw by chance, a replay with the same seed has what
// was promised, to the request.
func TestAdviseIsWhatTraceHas(t *testing.T) {
	var b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&b, "%d\n", i*i%1009+i%(1+i%977))
	}
	file := traceFile(t, "keys.txt", b.String())
	for _, seed := range []string{"0", "9"} {
		a := advised(t, "--seed", seed, "--goal", "origin", "--memory", "256KiB", "--policies", "sieve", file)
		code, stdout, stderr := bench(t.Context(), "trace", "--seed", seed, "--json", "-", "--tiers", a.Advice.argument(), file)
		if code != exitOK {
			t.Fatalf("trace: exit code %d, %q", code, stderr)
		}
		row := parseTrace(t, stdout).Rows[1]
		if !a.Advice.Exact || a.Advice.Least == nil || a.Advice.HitRatio != row.HitRatio {
			t.Errorf("seed %s: promised %+v, and trace has %v", seed, a.Advice.alternative, row.HitRatio)
		}
	}
}

// TestMeanIsTold: a remote tier that the 99th percentile speaks against is named where the mean would be
// far less with it.
func TestMeanIsTold(t *testing.T) {
	args := []string{"--memory", "1MiB", "--zipf", "0.7", "--keys", "20000", "--requests", "30000", "--policies", "lru", "--remote-latency", "800us"}
	a := advised(t, args...)
	if len(a.Advice.Tiers) != 1 || !strings.Contains(a.Advice.Why, "the mean would be") || !strings.Contains(a.Advice.Why, "l3:") {
		t.Errorf("%s because %s", a.Advice.argument(), a.Advice.Why)
	}
	if a = advised(t, append(args, "--goal", "origin")...); len(a.Advice.Tiers) != 2 && !strings.HasPrefix(a.Advice.argument(), "l3") {
		t.Errorf("goal origin: %s, want the remote tier", a.Advice.argument())
	}
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

// Where no entry has room nothing can be advised.
func TestAdviseWithRoomForNone(t *testing.T) {
	for _, args := range [][]string{
		{"--memory", "1KiB"},
		{"--memory", "1GiB", "--entry-bytes", "1TiB"},
		{"--remote-latency", "1ms", "--remote-memory", "1B"},
	} {
		code, _, stderr := bench(t.Context(), append([]string{"advise", "--keys", "10", "--requests", "10"}, args...)...)
		if code != exitFailure {
			t.Errorf("%v: exit code %d", args, code)
		}
		wantOneLine(t, stderr, "no room for an entry")
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

// What is no trace ends as a wrong flag does, from stdin too.
func TestAdviseOfNothingKnown(t *testing.T) {
	code, stdout, stderr := benchOf(t.Context(), strings.NewReader("two words\nand more of them\n"), "advise", "-")
	if code != exitUsage || stdout != "" {
		t.Errorf("exit code %d, stdout %q, want %d and nothing", code, stdout, exitUsage)
	}
	wantOneLine(t, stderr, "<stdin>: is text, in a format that cannot be told")
}
