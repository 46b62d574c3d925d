package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
)

// recommendation is what is advised.
type recommendation struct {
	alternative
	Exact        bool          `json:"exact"` // a replay with the same seed has it, to the request
	Refresh      refreshAdvice `json:"refresh"`
	Why          string        `json:"why"`
	FullHitRatio *float64      `json:"full_hit_ratio"` // of a full replay; nil: none was made
	Replay       string        `json:"replay"`         // the command that makes one; empty: there is no trace
	Config       string        `json:"config"`         // the document
}

func newRecommendation(s *adviseSettings, a *advice, best *alternative) *recommendation {
	r := &recommendation{alternative: *best, Exact: a.exact(best), Refresh: s.refresh(), Why: s.why(best) + s.whyNotMean(best, a.Alternatives)}
	for _, c := range a.Alternatives {
		if c.unsteady() && c != best {
			r.Why += fmt.Sprintf("; replays of %s differ by over %.1f points%s", c.argument(), 100*steadySpread, a.ofSeeds(c))
		}
	}
	if !slices.ContainsFunc(a.Alternatives, func(c *alternative) bool { return c.HitRatio >= useless }) {
		r.Why += "; next to no request is a hit in any of them: a cache is of no use to these requests"
	}
	switch {
	case !best.unsteady():
	case r.Exact:
		r.Why += fmt.Sprintf("; but its replays differ by over %.1f points from seed to seed, so that it is promised of this seed alone: those that are steadier have over %.0f points fewer hits, or fewer than it has with any seed", 100*steadySpread, 100*steadyWorth)
	default:
		r.Why += fmt.Sprintf("; but no promise: its replays differ by over %.1f points, and those that are steadier have over %.0f points fewer hits", 100*steadySpread, 100*steadyWorth)
	}
	if s.file != "" {
		format := ""
		if s.Format != "" {
			format = " --format " + s.Format
		}
		if s.Seed != 0 {
			format += fmt.Sprintf(" --seed %d", s.Seed)
		}
		r.Replay = fmt.Sprintf("go run ./bench trace --tiers %s%s %s", best.argument(), format, quoted(asOperand(s.file)))
	}
	r.Config = r.document(s, a)
	return r
}

// ofSeeds says what follows where replays are far apart.
func (a *advice) ofSeeds(c *alternative) string {
	if a.exact(c) {
		return " from seed to seed"
	}
	return ", so that nothing is promised of it"
}

// spread says how far replays are apart. They are.
func (r *recommendation) spread() string {
	if r.Exact {
		return fmt.Sprintf("so it is with this seed: with others replays have %s to %s %%, and a process draws its own", hundredth(r.Least), hundredth(r.Most))
	}
	return fmt.Sprintf("it draws by chance: replays have %s to %s %%", hundredth(r.Least), hundredth(r.Most))
}

// roundUp returns bytes in whole units of about a hundredth or less of them.
func roundUp(n int64) int64 {
	unit := int64(1)
	for _, larger := range []int64{1 << 10, 1 << 20, 1 << 30} {
		if n >= 100*larger {
			unit = larger
		}
	}
	return (n + unit - 1) / unit * unit
}

// why tells what decided.
func (s *adviseSettings) why(c *alternative) string {
	simple := "of those that do the same, and are not slower by a tenth in the mean, the one with the fewest tiers and the least memory"
	switch s.Goal {
	case goalOrigin:
		return fmt.Sprintf("no other has over 0.1 points fewer misses than %.2f %%; %s", 100*(1-c.HitRatio), simple)
	case goalCost:
		return fmt.Sprintf("no other costs over 0.5 %% less than %.4g an hour; %s", c.Cost, simple)
	default:
		return fmt.Sprintf("no other has a 99th percentile over 2 %% below %s, and then a mean over 1 %% below %s; %s", short(c.P99), short(c.Mean), simple)
	}
}

// useless is the hit ratio below which a cache is of no use.
const useless = 0.001

// muchFaster is by how much less the mean of another has to be for it to be told.
const muchFaster = 0.1

// whyNotMean tells of another whose mean is far less, where the goal is the 99th percentile:
// a remote tier, for one, spares most of those that it cannot answer nothing, and each of
// them waits for it too.
func (s *adviseSettings) whyNotMean(best *alternative, all []*alternative) string {
	if s.Goal != goalP99 {
		return ""
	}
	fastest := slices.MinFunc(all, func(x, y *alternative) int { return cmp.Compare(x.Mean, y.Mean) })
	if fastest.Mean > (1-muchFaster)*best.Mean {
		return ""
	}
	return fmt.Sprintf("; the mean would be %s in place of %s with %s, whose 99th percentile is %s: the goal is the latter, see --goal",
		short(fastest.Mean), short(best.Mean), fastest.argument(), short(fastest.P99))
}

// backends are those of the evictions.
var backends = map[string]string{
	"lru": "lru", "2q": "lru", "arc": "lru", "sieve": "sieve", "tinylfu": "ristretto", "w-tinylfu": "otter",
}

const (
	// upperLife is how long a tier above a remote one keeps what others may change.
	upperLife = 30 * time.Second
	// leastLoadTime and leastRemoteTime are limits that are long enough for anything that
	// is not broken.
	leastLoadTime   = 500 * time.Millisecond
	leastRemoteTime = 50 * time.Millisecond
	slack           = 10 // times what it takes
)

// document returns the advice as YAML.
func (r *recommendation) document(s *adviseSettings, a *advice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Advised for %q, goal %s, %s in this process.\n", s.label(), s.Goal, s.Memory)
	fmt.Fprintf(&b, "# Expected: %.2f %% of requests are hits", 100*r.HitRatio)
	if len(r.Tiers) > 1 {
		var parts []string
		for _, t := range r.Tiers {
			parts = append(parts, fmt.Sprintf("%s %.2f %%", t.Name, 100*t.HitRatio))
		}
		fmt.Fprintf(&b, " (%s)", strings.Join(parts, ", "))
	}
	fmt.Fprintf(&b, ", as long as entries live.\n")
	if r.varies() {
		fmt.Fprintf(&b, "# Beware, %s.\n", r.spread())
	}
	if r.Replay != "" {
		fmt.Fprintf(&b, "# To see it: %s\n", r.Replay)
	}
	fmt.Fprintf(&b, "caches:\n  %s:\n    tiers:\n", s.Name)
	for _, t := range r.Tiers {
		if t.remote {
			within := max(slack*time.Duration(a.Remote.P99*float64(time.Second)).Round(time.Millisecond), leastRemoteTime)
			fmt.Fprintf(&b, "      - {name: %s, backend: redis, url: %q, prefix: %q, timeout: %s}", t.Name, "${REDIS_URL:-"+a.Remote.url+"}", s.Name+":", within)
			fmt.Fprintf(&b, " # maxmemory %s, maxmemory-policy allkeys-lru\n", bytesText(a.remoteBytes(s)))
			continue
		}
		fmt.Fprintf(&b, "      - {name: %s, backend: %s, eviction: %s, capacity: %d", t.Name, backends[t.Policy], t.Policy, t.Size)
		if r.isRemote() {
			fmt.Fprintf(&b, ", ttl: %s", min(upperLife, s.TTL))
		}
		fmt.Fprintf(&b, "} # %s of %d bytes an entry\n", bytesText(roundUp(t.Size*a.Environment.EntryBytes)), a.Environment.EntryBytes)
	}
	fmt.Fprintf(&b, "    lifetime: {ttl: %s, jitter: 10%%", s.TTL)
	if s.MaxStale > 0 {
		fmt.Fprintf(&b, ", stale_while_revalidate: %s, stale_if_error: %s", s.MaxStale, s.MaxStale)
	}
	fmt.Fprintf(&b, "}\n    # %s\n    refresh: {policy: %s}\n", r.Refresh.Reason, r.Refresh.Policy)
	fmt.Fprintf(&b, "    limits: {load_timeout: %s}\n", max(leastLoadTime, slack*s.OriginLatency))
	return b.String()
}

// remoteBytes is what the remote tier needs, in whole MiB.
func (a *advice) remoteBytes(s *adviseSettings) int64 {
	if s.remoteMemory > 0 {
		return s.remoteMemory
	}
	return (a.Environment.RemoteEntries*a.Environment.EntryBytes + 1<<20 - 1) >> 20 << 20
}

// bareURL returns the URL without what may be secret in it. It is well formed.
func bareURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "redis://localhost:6379"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// documentOutput is where the document goes. Nil: nowhere.
type documentOutput struct {
	*outputFile
	stdout bool
	to     io.Writer
}

// openDocument makes the output for --config's argument.
func openDocument(name string, stdout io.Writer, inputs ...string) (*documentOutput, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return &documentOutput{stdout: true, to: stdout}, nil
	}
	f, err := openOutputFile("--config", name, inputs...)
	if err != nil {
		return nil, err
	}
	return &documentOutput{outputFile: f}, nil
}

func (o *documentOutput) write(document string) error {
	if o == nil {
		return nil
	}
	content := func(w io.Writer) error {
		_, err := io.WriteString(w, document)
		return err
	}
	if o.stdout {
		return content(o.to)
	}
	return o.outputFile.write(content)
}

// writtenBy returns the flag of the output that has the same file; empty where none has.
func (o *documentOutput) writtenBy(out *output) string {
	if o == nil || o.outputFile == nil || o.target == "" {
		return ""
	}
	for _, other := range []*outputFile{out.json, out.html} {
		if other != nil && other.target == o.target {
			return other.flag
		}
	}
	return ""
}

// discard removes what write has not completed.
func (o *documentOutput) discard() {
	if o != nil && o.outputFile != nil {
		o.outputFile.discard()
	}
}
