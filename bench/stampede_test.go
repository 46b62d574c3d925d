package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
)

// stampede runs the command in virtual time, for which only the wait is another.
func stampede(ctx context.Context, t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	s := new(stampedeSettings)
	f := pflag.NewFlagSet("stampede", pflag.ContinueOnError)
	s.register(f)
	if err := errors.Join(f.Parse(args), s.fromFlags(f)); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	err = runStampede(ctx, s, s.comparison(), &out, &errs)
	return out.String(), errs.String(), err
}

func TestStampede(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stdout, stderr, err := stampede(t.Context(), t, "--json", "-", "--seed", "5")
		if err != nil || stderr != "" {
			t.Fatalf("error %v, stderr %q", err, stderr)
		}
		var rep stampedeReport
		if err := json.Unmarshal([]byte(stdout), &rep); err != nil {
			t.Fatal(err)
		}
		if e := rep.Environment; !e.Complete || e.Seed != 5 || e.Rate != 100 || e.Seconds != 20 || e.Lasted != 20 || e.TTL != 2 ||
			e.Stale != 1 || e.Latency != 0.1 || e.Capacity != 20 || e.Slow != 0.05 || e.Arrivals != "even" || len(e.Notes) != 0 {
			t.Errorf("environment: %+v", e)
		}
		want := map[string]struct{ least, most, leastPeak, mostPeak, leastSlow, mostSlow int }{
			"naive":         {95, 110, 8, 14, 95, 110},
			"single-flight": {8, 10, 1, 1, 40, 70},
			"swr":           {8, 10, 1, 1, 0, 0},
			"xfetch-1":      {10, 14, 1, 1, 0, 12},
			"xfetch-2":      {13, 20, 1, 1, 0, 12},
			"swr-jitter":    {8, 11, 1, 1, 0, 0},
			"processes-4":   {32, 40, 4, 4, 40, 110},
			"lease-4":       {8, 10, 1, 1, 40, 110},
		}
		if len(rep.Rows) != len(want) {
			t.Errorf("got %d rows, want %d", len(rep.Rows), len(want))
		}
		for _, r := range rep.Rows {
			w, known := want[r.Strategy]
			if !known || r.OriginCalls < w.least || r.OriginCalls > w.most || r.OriginPeak < w.leastPeak || r.OriginPeak > w.mostPeak ||
				r.Slow < w.leastSlow || r.Slow > w.mostSlow || r.Requests != 2000 || r.Failed != 0 || r.Refused != 0 || len(r.Calls) != r.OriginCalls || r.Does == "" {
				t.Errorf("got %+v, want %+v", r, w)
			}
			if strings.HasPrefix(r.Strategy, "xfetch") && r.Oldest > 2 {
				t.Errorf("%s: oldest %v, want no more than 2", r.Strategy, r.Oldest)
			}
		}
		for _, c := range rep.Cases {
			if c.Case == "burst-naive" && (c.OriginCalls != 200 || c.Failed != 180 || c.Published == nil || *c.Published != 200) {
				t.Errorf("got %+v", c)
			}
		}
		if len(rep.Cases) != 11 || len(rep.Spread) != 2 || rep.Spread[0].Tenths[5] != 5000 {
			t.Errorf("got %d cases, spread %+v", len(rep.Cases), rep.Spread)
		}
	})
}

func TestStampedeTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stdout, _, err := stampede(t.Context(), t, "--seconds", "3", "--processes", "2")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"100/s for 3s", "ttl 2s", "20 at once", "\nnaive  ", "\nlease-2  ", "\nearly-with-lock  ", "jitter 0.1: TTLs", "How to read it"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("got %q, want %q in it", stdout, want)
			}
		}
		if strings.Contains(stdout, "\n!") {
			t.Errorf("a note in %q", stdout)
		}
	})
}

// Interrupted it prints what was done: in the comparison with a note, in the cases
// before it nothing, as none is done.
func TestStampedeIsInterrupted(t *testing.T) {
	for after, want := range map[time.Duration]string{time.Second: "", 5 * time.Second: "interrupted after"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer time.AfterFunc(after, cancel).Stop()
			stdout, _, err := stampede(ctx, t)
			if !errors.Is(err, errInterrupted) {
				t.Errorf("got error %v, want %v", err, errInterrupted)
			}
			if (stdout == "") != (want == "") || !strings.Contains(stdout, want) {
				t.Errorf("after %v: got %q, want %q in it", after, stdout, want)
			}
		})
	}
}

// In real time, and through the command as a whole. What is asserted holds however
// slow the machine is.
func TestStampedeInRealTime(t *testing.T) {
	rep := decoded[stampedeReport](t, "stampede", "--seconds", "0.3", "--ttl", "100ms", "--latency", "20ms", "--stale", "10s")
	if len(rep.Rows) != 8 || !rep.Environment.Complete {
		t.Fatalf("got %d rows, environment %+v", len(rep.Rows), rep.Environment)
	}
	for _, r := range rep.Rows {
		if r.Requests != 30 || r.OriginCalls < 1 || r.Failed > 0 {
			t.Errorf("%+v", r)
		}
		switch r.Strategy {
		case "single-flight", "swr", "xfetch-1", "xfetch-2", "swr-jitter":
			if r.OriginPeak != 1 {
				t.Errorf("%s: peak %d, want 1", r.Strategy, r.OriginPeak)
			}
		}
	}
}
