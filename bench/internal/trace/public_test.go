package trace_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/terracecache/terrace/bench/internal/trace"
)

// TestPublicTraces reads the public traces, which lie beside the project; without them it
// is skipped. How many requests and keys they have is what awk and uniq say.
func TestPublicTraces(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "shared", "traces")
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the public cache traces are not there: no folder %s", root)
	}
	for _, want := range []struct {
		file           string
		format         trace.Format
		requests, keys int // keys of the longest are not counted, which takes long
	}{
		{"lirs/cs.trace.gz", trace.LIRS, 6781, 1409},
		{"lirs/gli.trace.gz", trace.LIRS, 6015, 2529},
		{"lirs/loop.trace.gz", trace.LIRS, 505500, 1011},
		{"lirs/multi1.trace.gz", trace.LIRS, 15858, 2606},
		{"cache2k/web07.trace.xz", trace.Cache2k, 76118, 20484},
		{"cache2k/web12.trace.xz", trace.Cache2k, 95607, 13756},
		{"sized/request.trace.xz", trace.Sized, 66987, 36815},
		{"cachelib/kv_traces_1.csv", trace.CacheLib, 691, 52},
		{"cachelib/kv_traces_2.csv", trace.CacheLib, 433, 62},
		{"p3.arc.gz", trace.ARC, 3912296, 0},
	} {
		t.Run(want.file, func(t *testing.T) {
			f, err := os.Open(filepath.Join(root, want.file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r, err := trace.NewReader(f, trace.Options{Name: want.file})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got := r.Format(); got != want.format {
				t.Errorf("taken for %s, want %s", got, want.format)
			}
			requests, keys := 0, make(map[uint64]bool)
			for {
				var q trace.Request
				err := r.Next(&q)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				requests++
				if want.keys > 0 {
					keys[q.Key] = true
				}
			}
			if requests != want.requests || len(keys) != want.keys {
				t.Errorf("%d requests of %d keys, want %d of %d", requests, len(keys), want.requests, want.keys)
			}
		})
	}
}
