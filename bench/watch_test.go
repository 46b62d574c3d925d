package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// until is a measurement that lasts as long, or until it is cut short.
func until(d time.Duration) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
			return "done", nil
		case <-ctx.Done():
			return "cut short", context.Cause(ctx)
		}
	}
}

func TestWatchCutsARowShortWhenTheServerIsGone(t *testing.T) {
	gone := errors.New("connection refused")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := &remote{label: "redis", probe: func(context.Context) error {
			if time.Since(began) > 10*time.Second {
				return gone
			}
			return nil
		}}
		got, err := watched(t.Context(), r, until(time.Hour))
		if got != "cut short" || !errors.Is(err, gone) {
			t.Errorf("got %q, %v", got, err)
		}
		if took := time.Since(began); took < 11*time.Second || took > 13*time.Second {
			t.Errorf("cut short after %v, want about 12s", took)
		}
	})
}

func TestWatchForgivesOneAnswerThatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		r := &remote{label: "redis", probe: func(context.Context) error {
			if asked++; asked%2 == 0 {
				return errors.New("timeout")
			}
			return nil
		}}
		if got, err := watched(t.Context(), r, until(time.Minute)); got != "done" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if asked < 50 {
			t.Errorf("asked %d times in a minute", asked)
		}
	})
}

func TestWatchOfNoServer(t *testing.T) {
	if got, err := watched(t.Context(), nil, until(0)); got != "done" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRefreshesPutOffAreNoted(t *testing.T) {
	// 400 refreshes a second of half a second each: more than may run at once.
	code, stdout, stderr := bench(t.Context(), "--combinations", "l2", "--policies", "swr", "--json", "-",
		"--rate", "2000", "--keys", "200", "--skew", "0", "--ttl", "200ms", "--stale", "2s",
		"--seconds", "1", "--warmup-seconds", "0.8", "--closed-seconds", "0.02", "--origin-latency", "400ms")
	if code != exitOK || stderr != "" {
		t.Errorf("got exit code %d, stderr %q", code, stderr)
	}
	notes := fmt.Sprint(parse(t, stdout).Environment["notes"])
	if !strings.Contains(notes, "l2, swr") || !strings.Contains(notes, "refreshes were put off") {
		t.Errorf("notes: got %s", notes)
	}
}
