package replay_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/optimal"
	"github.com/terracecache/terrace/bench/internal/replay"
	"github.com/terracecache/terrace/bench/internal/trace"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

func nothing(int64) {}

func record(t *testing.T, r *trace.Reader) *capture.Trace {
	t.Helper()
	c, err := capture.Record(t.Context(), r, t.TempDir(), func(m *trace.Malformed) { t.Error(m) }, nothing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Link(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	return c
}

func recordText(t *testing.T, format trace.Format, text string) *capture.Trace {
	t.Helper()
	r, err := trace.NewReader(strings.NewReader(text), trace.Options{Format: format})
	if err != nil {
		t.Fatal(err)
	}
	return record(t, r)
}

// public captures a public trace, which lies beside the project; without it the test is
// skipped.
func public(t *testing.T, name string) *capture.Trace {
	t.Helper()
	file := filepath.Join("..", "..", "..", "..", "shared", "traces", name)
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the public cache traces are not there: no file %s", file)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := trace.NewReader(f, trace.Options{Name: file})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return record(t, r)
}

// TestPublicFigures has the figures that others have found for the public traces.
func TestPublicFigures(t *testing.T) {
	for _, test := range []struct {
		trace    string
		size     int64
		lru, opt float64 // percent; below zero: not known
	}{
		{"lirs/multi1.trace.gz", 500, 46.51, -1},
		{"lirs/multi1.trace.gz", 1000, 48.23, 71.40},
		{"lirs/multi1.trace.gz", 2000, 83.21, -1},
		{"lirs/multi3.trace.gz", 1500, -1, 62.90},
		{"cache2k/web12.trace.xz", 2000, 72.56, -1},
		{"lirs/loop.trace.gz", 512, 0, -1},
	} {
		t.Run(fmt.Sprintf("%s/%d", filepath.Base(test.trace), test.size), func(t *testing.T) {
			t.Parallel()
			c := public(t, test.trace)
			check := func(what string, tally capture.Tally, want float64) {
				got := 100 * float64(tally.Hits) / float64(tally.Requests)
				if want >= 0 && math.Abs(got-want) > 0.005 {
					t.Errorf("%s: %.3f %%, want %.2f %%", what, got, want)
				}
			}
			result, err := replay.Run(t.Context(), c, []replay.Tier{{Policy: "lru", Size: test.size}}, 0, nothing)
			if err != nil {
				t.Fatal(err)
			}
			check("lru", result.Tally, test.lru)
			best, err := optimal.Belady(t.Context(), c, test.size, nothing)
			if err != nil {
				t.Fatal(err)
			}
			check("opt", best, test.opt)
		})
	}
}

// mixed is a trace of all operations, of which some are far more frequent than others, with
// sizes that change.
func mixed(n int) string {
	random := rand.New(rand.NewPCG(9, 10))
	var text strings.Builder
	for range n {
		op := []string{"get", "get", "get", "get", "get", "set", "delete"}[random.IntN(7)]
		key := int(1/(random.Float64()+1e-3)) + random.IntN(10)
		fmt.Fprintf(&text, "0,k%d,0,%d,0,%s,0\n", key, 1+key%7*(1+random.IntN(2)), op)
	}
	return text.String()
}

// all are all policies, in both ways.
func all() []string {
	names := slices.Clone(replay.Policies)
	for _, p := range replay.Policies {
		if replay.Known(p + replay.Sharded) {
			names = append(names, p+replay.Sharded)
		}
	}
	return names
}

// TestNoPolicyIsBetterThanPossible: none has more hits than the bound, and none holds more
// than it may.
func TestNoPolicyIsBetterThanPossible(t *testing.T) {
	c := recordText(t, trace.Twitter, mixed(2500))
	for _, size := range []int64{1, 2, 30, 1000} {
		for _, bytes := range []bool{false, true} {
			bound := optimal.Belady
			if bytes {
				bound = optimal.Volume
			}
			best, err := bound(t.Context(), c, size, nothing)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range all() {
				if bytes && !replay.CanBytes(p) {
					continue
				}
				result, err := replay.Run(t.Context(), c, []replay.Tier{{Policy: p, Size: size, Bytes: bytes}}, 0, nothing)
				if err != nil {
					t.Fatalf("%s of %d: %v", p, size, err)
				}
				if result.Hits > best.Hits || result.Hits == 0 && size > 2 {
					t.Errorf("%s of %d (bytes: %v): %d hits, and the bound is %d", p, size, bytes, result.Hits, best.Hits)
				}
				if held := result.Tiers[0].Held; held > size || held == 0 {
					t.Errorf("%s of %d (bytes: %v) held %d", p, size, bytes, held)
				}
				if got, want := result.Requests, c.Counts().Requests; got != want {
					t.Errorf("%s: %d requests, want %d", p, got, want)
				}
			}
		}
	}
}

// TestCounts replays a small trace by hand: what a write, a deletion, a size and a cost
// count for.
func TestCounts(t *testing.T) {
	for _, test := range []struct {
		name   string
		format trace.Format
		input  string
		want   capture.Tally
	}{
		{"a write is a request, and finds or fills", trace.Twitter, "0,a,0,1,0,set,0\n0,a,0,2,0,get,0\n0,a,0,4,0,set,0\n0,b,0,8,0,get,0\n0,b,0,16,0,get,0\n",
			capture.Tally{Requests: 5, Hits: 3, Reads: 3, ReadHits: 2, Bytes: 31, HitBytes: 22}},
		{"a deletion is a request without a hit", trace.Twitter, "0,a,0,1,0,get,0\n0,a,0,2,0,delete,0\n0,a,0,4,0,get,0\n0,a,0,8,0,get,0\n",
			capture.Tally{Requests: 4, Hits: 1, Reads: 3, ReadHits: 1, Bytes: 13, HitBytes: 8}},
		{"a cost is that of a miss", trace.Address, "l a 1 1 10\nl a 1 2 20\ns a 1 3 40\nl b 1 1 80\n",
			capture.Tally{Requests: 4, Hits: 2, Reads: 3, ReadHits: 1, Cost: 150, HitCost: 60}},
		{"a line of ARC is many", trace.ARC, "1 3 0 0\n2 3 0 1\n", capture.Tally{Requests: 6, Hits: 2, Reads: 6, ReadHits: 2}},
		{"op_count repeats", trace.CacheLib, "key,op,op_count\na,GET,3\n", capture.Tally{Requests: 3, Hits: 2, Reads: 3, ReadHits: 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := recordText(t, test.format, test.input)
			result, err := replay.Run(t.Context(), c, []replay.Tier{{Policy: "lru", Size: 9}}, 0, nothing)
			if err != nil {
				t.Fatal(err)
			}
			if result.Tally != test.want {
				t.Errorf("lru: %+v\nwant %+v", result.Tally, test.want)
			}
			best, err := optimal.Belady(t.Context(), c, 9, nothing)
			if err != nil {
				t.Fatal(err)
			}
			if best != test.want {
				t.Errorf("opt: %+v\nwant %+v", best, test.want)
			}
		})
	}
}

// TestTiersAreTheCoordinators replays a trace through tiers, and asks a real cache of the
// same tiers: each request is answered by the same tier.
func TestTiersAreTheCoordinators(t *testing.T) {
	c := recordText(t, trace.Twitter, mixed(3000))
	sizes := []int{5, 20, 60}
	var chain []replay.Tier
	options := coordinator.Options[uint64, int64]{
		Name:     "replayed",
		Lifetime: policy.Lifetime{TTL: tier.Forever},
		Load:     func(context.Context, uint64) (int64, error) { return 1, nil },
	}
	for i, size := range sizes {
		name := fmt.Sprint("l", i+1)
		chain = append(chain, replay.Tier{Name: name, Policy: "lru", Size: int64(size)})
		options.Tiers = append(options.Tiers, tier.Tier[uint64, int64]{
			Name: name, Store: lru.NewWith[uint64, int64](lru.Options{Capacity: size, Shards: 1}),
		})
	}
	cache, err := coordinator.New(options)
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close(context.Background())
	want := make(map[string]int64)
	err = c.Each(t.Context(), func(b *capture.Batch) error {
		for _, q := range b.Requests {
			if q.Op == trace.Delete {
				if err := cache.Delete(t.Context(), q.Key); err != nil {
					return err
				}
				continue
			}
			r, err := cache.Lookup(t.Context(), q.Key)
			if err != nil {
				return err
			}
			want[r.Tier]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := replay.Run(t.Context(), c, chain, 0, nothing)
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, r := range result.Tiers {
		sum += r.Hits
		if r.Hits != want[r.Name] || r.Hits == 0 {
			t.Errorf("%s: %d hits, and %d in a cache", r.Name, r.Hits, want[r.Name])
		}
	}
	if sum != result.Hits {
		t.Errorf("%d hits, and %d of tiers", result.Hits, sum)
	}
}

func TestBadTiers(t *testing.T) {
	c := recordText(t, trace.Plain, "a\n")
	for _, tiers := range [][]replay.Tier{
		{{Policy: "fifo", Size: 1}},
		{{Policy: "lru", Size: 0}},
		{{Policy: "lru", Size: 1, Bytes: true}},
		{{Policy: "lru", Size: 1}, {Policy: "tinylfu", Size: -1}},
		{{Policy: "w-tinylfu"}},
	} {
		if _, err := replay.Run(t.Context(), c, tiers, 0, nothing); err == nil {
			t.Errorf("%+v are replayed", tiers)
		}
	}
}

// TestSeedTellsHits: a replay of Terrace's own stores has the same hits for the same seed, alone
// and below others, and for some other seed others.
func TestSeedTellsHits(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var text strings.Builder
	for range 10_000 {
		fmt.Fprintln(&text, int(4000*math.Pow(random.Float64(), 2)))
	}
	c := recordText(t, trace.Plain, text.String())
	for _, tiers := range [][]replay.Tier{
		{{Name: "l1", Policy: "sieve", Size: 100}},
		{{Name: "l1", Policy: "lru", Size: 30}, {Name: "l2", Policy: "sieve", Size: 300}},
		{{Name: "l1", Policy: "lru-sharded", Size: 600}},
		{{Name: "l1", Policy: "sieve-sharded", Size: 1100}},
	} {
		name := tiers[0].Policy + tiers[len(tiers)-1].Policy
		seen := make(map[int64]bool)
		for seed := range uint64(5) {
			var hits [2]int64
			for i := range hits {
				result, err := replay.Run(t.Context(), c, tiers, seed, nothing)
				if err != nil {
					t.Fatal(err)
				}
				hits[i] = result.Hits
			}
			if hits[0] != hits[1] {
				t.Errorf("%s, seed %d: %d and %d hits", name, seed, hits[0], hits[1])
			}
			seen[hits[0]] = true
		}
		if len(seen) == 1 {
			t.Errorf("%s: the same hits with all seeds: %v", name, seen)
		}
	}
}

// TestRecencyIsTheStore: an LRU that is replayed without its store has the hits of that, of all kinds.
func TestRecencyIsTheStore(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	for _, keys := range []float64{2, 50, 3000} {
		var text strings.Builder
		for range 10_000 {
			key := int(keys * math.Pow(random.Float64(), 2))
			fmt.Fprintf(&text, "0,k%d,0,%d,0,%s,0\n", key, 1+key%7, []string{"get", "get", "set"}[random.IntN(3)])
		}
		c := recordText(t, trace.Twitter, text.String())
		for _, size := range []int64{1, 2, 3, 10, 49, 50, 900, 5000} {
			store := lru.NewWith[uint64, int64](lru.Options{Capacity: int(size), Shards: 1})
			var want capture.Tally
			err := c.Each(t.Context(), func(b *capture.Batch) error {
				for i := range b.Requests {
					q := &b.Requests[i]
					e, err := store.Get(t.Context(), q.Key)
					if err != nil {
						return err
					}
					if want.Count(q, e != nil); e == nil {
						if err := store.Set(t.Context(), q.Key, tier.NewEntry[int64](1, tier.Meta{UsableUntil: tier.Never}), tier.Forever); err != nil {
							return err
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := replay.Run(t.Context(), c, []replay.Tier{{Name: "l1", Policy: "lru", Size: size}}, 0, nothing)
			if err != nil {
				t.Fatal(err)
			}
			if got.Tally != want || got.Tiers[0].Hits != want.Hits || got.Tiers[0].Held != store.Usage().Entries {
				t.Errorf("%v keys, %d entries: %+v, want %+v", keys, size, got, want)
			}
		}
	}
}
