package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/terracecache/terrace/bench/internal/trace"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/coordinator/config"
)

// loop reads a public trace that goes round and round over more keys than the cache
// holds, and lies beside the project; without it the test is skipped.
func loop(t *testing.T) []string {
	t.Helper()
	name := filepath.Join("..", "..", "shared", "traces", "lirs", "loop.trace.gz")
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the public cache traces are not there: no file %s", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := trace.NewReader(f, trace.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var keys []string
	for {
		var q trace.Request
		if err := r.Next(&q); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, strconv.FormatUint(q.Key, 10))
	}
	return keys
}

// On a loop over about twice the capacity, what makes room decides all: whoever lets go
// of the oldest always lets go of what is asked for next. Nothing but the document's
// eviction differs.
func TestEvictionOfTheDocumentDecidesTheHitRatio(t *testing.T) {
	keys := loop(t)
	keys = keys[:min(len(keys), 10_000)] // it only repeats itself
	const text = `caches:
  looped:
    tiers: [{name: l1, backend: memory, eviction: lru, capacity: 512}]
    lifetime: {ttl: forever}
`
	for _, test := range []struct {
		eviction    string
		least, most float64
	}{
		{"lru", 0, 0.01},
		{"2q", 0, 0.01},
		{"arc", 0, 0.05},
		{"sieve", 0.15, 1},
		{"tinylfu", 0.15, 1},
		{"w-tinylfu", 0.15, 1},
	} {
		t.Run(test.eviction, func(t *testing.T) {
			doc, err := config.Parse("loop.yaml", []byte(text), config.Options{Set: []string{"looped.tiers.l1.eviction=" + test.eviction}})
			if err != nil {
				t.Fatal(err)
			}
			cache, err := config.Build(doc, "looped", config.Code[string, []byte]{})
			if err != nil {
				t.Fatal(err)
			}
			defer cache.Close(t.Context())
			if got := cache.Stats().Tiers[0].Eviction; got != test.eviction {
				t.Errorf("%s runs", got)
			}
			ratio := ask(t, cache, keys)
			t.Logf("%.3f", ratio)
			if ratio < test.least || ratio > test.most {
				t.Errorf("hit ratio %.3f, want %v to %v", ratio, test.least, test.most)
			}
		})
	}
}

// ask asks for the keys and returns the share that needed no load. Stores that work
// off their writes behind the caller's back are given time for it.
func ask(t *testing.T, cache *coordinator.Cache[string, []byte], keys []string) float64 {
	t.Helper()
	loads := 0
	load := func(context.Context, string) ([]byte, error) {
		loads++
		return []byte("value"), nil
	}
	for i, key := range keys {
		if _, err := cache.GetOrLoad(t.Context(), key, load); err != nil {
			t.Fatal(err)
		}
		if i%64 == 63 {
			time.Sleep(500 * time.Microsecond)
		}
	}
	return 1 - float64(loads)/float64(len(keys))
}
