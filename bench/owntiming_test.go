package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/tier"
)

func durations(text string) (all []time.Duration) {
	for _, f := range strings.Fields(text) {
		d, err := time.ParseDuration(f)
		if err != nil {
			panic(err)
		}
		all = append(all, d)
	}
	return all
}

func TestOwnTiming(t *testing.T) {
	twitter := func(times ...int) string {
		var b strings.Builder
		for i, at := range times {
			fmt.Fprintf(&b, "%d,k%d,2,10,1,get,0\n", at, i)
		}
		return b.String()
	}
	le := func(b []byte, v uint64, bytes int) []byte {
		for range bytes {
			b, v = append(b, byte(v)), v>>8
		}
		return b
	}
	var oracle []byte
	for _, at := range []uint64{5, 5, 7} {
		oracle = le(le(le(le(oracle, at, 4), 77, 8), 10, 4), 1<<64-1, 8)
	}
	for _, c := range []struct {
		name, input, args string
		due               string
		warm              int
		notes             []string // what each must have
	}{
		{"twitter.csv", twitter(100, 101, 103, 104), "--speed 1 --seconds 3.5", "0s 1s 3s", 1, nil},
		{"twitter.csv", twitter(100, 101, 103, 104), "--speed 10 --seconds 3.5", "0s 100ms 300ms 400ms", 0, []string{"before the"}},
		{"twitter.csv", twitter(100, 101, 103, 104), "--speed 0.5 --seconds 3.5", "0s 2s", 1, nil},
		{"twitter.csv", twitter(7, 7, 7, 7, 8, 8, 9), "--speed 1 --seconds 0.75 --warmup-seconds 1", "0s 250ms 500ms 750ms 1s 1.5s", 4, nil},
		{"twitter.csv", twitter(7, 9, 8, 8, 10, 20), "--speed 1 --seconds 9", "0s 2s 2.333333333s 2.666666666s 3s", 1, []string{"2 requests have a time before", "a gap of 10s"}},
		{"libcachesim.csv", "time,id\n0.25,a\n0.5,b\n0.5,c\n2e0,d\nnever,d\n9,e\n", "--speed 1 --seconds 3", "0s 250ms 250ms 1.75s", 0, []string{"1 lines", "a gap of 7s"}},
		{"libcachesim.csv", "timestamp,obj_id\n1600000000000000000,a\n1600000000000001024,b\n1600000009000000000,c\n", "--speed 1e9 --seconds 3", "0s 1.024µs", 0, []string{"a gap of 9e+09s"}},
		{"libcachesim.csv", "time,id\n2026-11-30T10:00:00Z,a\n2026-11-30T12:00:00.5+02:00,b\n2026-11-30T10:00:09Z,c\n", "--speed 1 --seconds 3", "0s 500ms", 0, []string{"a gap of 8.5s"}},
		// Damaged times: in the middle, at the end, at the beginning.
		{"twitter.csv", twitter(100, 4294967295, 101, 4294967295, 4294967294, 102, 105), "--speed 1 --seconds 3.5", "0s 1s 2s", 1, []string{"3 requests have a time behind the end"}},
		{"twitter.csv", twitter(100, 101, 102, 4294967295), "--speed 1 --seconds 9", "0s 1s 2s", 1, []string{"a gap of 4.295e+09s"}},
		{"twitter.csv", twitter(4294967295, 100, 101), "--speed 1 --seconds 9", "0s 333.333333ms 666.666666ms", 2, []string{"2 requests have a time before", "before the"}},
		{"x.oracleGeneral", string(oracle), "--speed 2 --seconds 3", "0s 250ms 1s", 0, []string{"before the"}},
		{"cachelib.csv", "op_time,key,op,op_count\n3,a,GET,2\n4,b,GET,1\n", "--speed 1 --seconds 3", "0s 500ms 1s", 0, []string{"before the"}},
	} {
		t.Run(c.name+" "+c.args, func(t *testing.T) {
			args := append([]string{"--trace", traceFile(t, c.name, c.input), "--warmup-seconds", "0.5"}, strings.Fields(c.args)...)
			if strings.Contains(c.args, "speed 10") || c.warm == 0 {
				args = append(args, "--warmup-seconds", "0")
			}
			w := workloadOf(t, args...)
			if want := durations(c.due); !slices.Equal(w.due, want) || w.warm != c.warm {
				t.Errorf("got %v, of which %d in the warm-up, want %v and %d", w.due, w.warm, want, c.warm)
			}
			if len(w.notes) != len(c.notes) {
				t.Fatalf("notes %q, want %q", w.notes, c.notes)
			}
			for i, want := range c.notes {
				if !slices.ContainsFunc(w.notes, func(n string) bool { return strings.Contains(n, want) }) {
					t.Errorf("note %d: %q is missing in %q", i, want, w.notes)
				}
			}
		})
	}
}

// Requests begin at their own moments, whether or not those before them have ended.
func TestPaceOfOwnTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := workloadOf(t, "--trace", traceFile(t, "x.csv", "time,id\n10,a\n10.5,a\n11,b\n11.25,a\n11.25,c\n20,a\n"),
			"--speed", "2", "--warmup-seconds", "0.5", "--seconds", "5")
		p := newPace(len(w.due)-w.warm, 1, time.Sleep)
		p.at, p.from = w.due[w.warm:], w.warmup
		var mu sync.Mutex
		began := make([]time.Duration, p.n)
		openLoop(t.Context(), p, 4, func(i int, due tier.Instant) {
			mu.Lock()
			began[i] = tier.Now().Sub(p.start)
			mu.Unlock()
			if late := tier.Now().Sub(due); late != 0 {
				t.Errorf("request %d began %v late", i, late)
			}
			time.Sleep(time.Second)
		})
		if want := durations("0s 125ms 125ms 4.5s"); !slices.Equal(began, want) {
			t.Errorf("got %v, want %v", began, want)
		}
		if p.heldUp != 0 {
			t.Errorf("%d were held up, and there were workers for all", p.heldUp)
		}
	})
}

// Ctrl-C ends a comparison that waits for its trace.
func TestReadingAWorkloadIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := traceFile(t, "x.csv", "time,id\n"+strings.Repeat("1,a\n", 5000))
	if w, err := settingsOf(t, "--trace", file, "--speed", "1", "--warmup-seconds", "0").newWorkload(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v and %v, want that the context has ended", w, err)
	}
}

// What finds all workers under way waits, and is counted.
func TestOpenLoopTellsOfItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(5, 1, time.Sleep)
		p.at = durations("0s 100ms 200ms 300ms 5s")
		var mu sync.Mutex
		began := make([]time.Duration, p.n)
		openLoop(t.Context(), p, 2, func(i int, _ tier.Instant) {
			mu.Lock()
			began[i] = tier.Now().Sub(p.start)
			mu.Unlock()
			time.Sleep(time.Second)
		})
		if want := durations("0s 100ms 1s 1.1s 5s"); !slices.Equal(began, want) {
			t.Errorf("got %v, want %v", began, want)
		}
		if p.heldUp != 2 || p.heldFor != 800*time.Millisecond {
			t.Errorf("%d were held up for up to %v, want 2 for 800ms", p.heldUp, p.heldFor)
		}
	})
}

func TestCompareByOwnTimes(t *testing.T) {
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "%d,k%d,2,10,1,get,0\n", i, i%4)
	}
	args := []string{"--combinations", "l1", "--policies", "fixed", "--speed", "200", "--seconds", "0.2", "--warmup-seconds", "0.05", "--closed-seconds", "0.01",
		"--concurrency", "1", "--origin-latency", "30ms", "--ttl", "1m", "--trace", traceFile(t, "x.csv", text.String())}
	table, rep := benchBoth(t, args...)
	if r, e := rep.Rows[0], rep.Environment.Workload; r.Requests != 40 || e.Speed != 200 || e.Rate != 200 {
		t.Errorf("%d requests at %v times the speed, mean rate %v; want 40, 200 and 200", r.Requests, e.Speed, e.Rate)
	}
	for _, want := range []string{"at 200 times its speed", "200 reads/s"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
}

func TestWrongOwnTimes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"keys.txt": "a\nb\n", "untimed.csv": "id,size\na,1\n", "twitter.csv": "5,k,2,10,1,get,0\n5,k,2,10,1,get,0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"--trace=- --speed 1", "/dev/stdin"},
		{"--speed 1", "--speed is of a trace"},
		{"--format plain", "--format is of a trace"},
		{"--trace keys.txt --format=", "--format is empty"},
		{"--trace keys.txt --format plane", `no "plane"`},
		{"--trace twitter.csv --speed 0", "--speed 0"},
		{"--trace twitter.csv --speed -1", "--speed -1"},
		{"--trace twitter.csv --speed NaN", "--speed NaN"},
		{"--trace twitter.csv --speed 1 --rate 5", "--rate: with --speed"},
		{"--trace twitter.csv --speed 100", "none of its requests comes"},
		{"--trace twitter.csv --speed 1 --format plain", "format plain, and has no times"},
		{"--trace keys.txt --speed 1", "format plain, and has no times"},
		{"--trace untimed.csv --speed 1", "format libcachesim, and has no times"},
	} {
		args := strings.Fields(strings.NewReplacer("--trace ", "--trace "+dir+"/").Replace(c.args))
		code, stdout, stderr := bench(t.Context(), append([]string{"--combinations", "l1"}, args...)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%s: exit code %d, stdout %q", c.args, code, stdout)
		}
		wantOneLine(t, stderr, c.want)
	}
}
