package main

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/tier"
)

func TestOriginLogNormal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := settingsOf(t, "--origin", "log-normal", "--origin-latency", "100ms").newOrigin()
		const n = 4000
		sum, squares := 0.0, 0.0
		for range n {
			began := time.Now()
			if _, err := o.load(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			l := math.Log(time.Since(began).Seconds() / 0.1)
			sum, squares = sum+l, squares+l*l
		}
		wantShare(t, "mean of the logarithm", sum/n, 0, 0.04)
		wantShare(t, "its deviation", math.Sqrt(squares/n), 0.5, 0.04)
		if o.peak.Load() != 1 || !o.mayFail() {
			t.Errorf("peak %d", o.peak.Load())
		}
	})
}

func TestOriginLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := settingsOf(t, "--origin", "limited", "--origin-capacity", "20").newOrigin()
		var refused atomic.Int64
		for range 200 {
			go func() {
				if _, err := o.load(t.Context(), "k"); errors.Is(err, errOverCapacity) {
					refused.Add(1)
				}
			}()
		}
		time.Sleep(time.Second)
		if o.calls.Load() != 200 || refused.Load() != 180 || o.peak.Load() != 20 || o.running.Load() != 0 {
			t.Errorf("%d calls, %d refused, peak %d, %d run", o.calls.Load(), refused.Load(), o.peak.Load(), o.running.Load())
		}
	})
}

func TestOriginFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := settingsOf(t, "--origin", "failing", "--origin-fails", "0.2", "--seconds", "10", "--origin-latency", "0s").newOrigin()
		fails := func() bool { _, err := o.load(t.Context(), "k"); return errors.Is(err, errOriginDown) }
		if fails() {
			t.Error("it fails before the open loop")
		}
		o.mark()
		for at := range 120 { // every 100 ms
			if got, want := fails(), at >= 40 && at < 60; got != want {
				t.Errorf("at %d00ms: fails %v, want %v", at, got, want)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// Where the origin fails, failed reads are counted and end nothing.
func TestCompareWithAFailingOrigin(t *testing.T) {
	args := append([]string{"--combinations", "l1", "--policies", "fixed", "--origin", "failing", "--origin-fails", "1", "--ttl", "20ms"}, quick...)
	stdout, rep := benchBoth(t, args...)
	if r := rep.Rows[0]; r.Failed == 0 || r.Failed > r.Misses || r.Requests != 200 {
		t.Errorf("got %+v", r)
	}
	if o := rep.Environment.Origin; o.Kind != "failing" || o.Fails != 1 {
		t.Errorf("got %+v", o)
	}
	if !strings.Contains(stdout, "failed") || !strings.Contains(stdout, "fails for 100 %") {
		t.Errorf("got %s", stdout)
	}
	// With a stale window that reaches over the failure none fails.
	_, rep = benchBoth(t, append(args, "--stale-if-error", "10s", "--warmup-seconds", "0.3", "--keys", "5")...)
	if r := rep.Rows[0]; r.Failed != 0 || r.OriginCalls == 0 {
		t.Errorf("got %+v", r)
	}
}

func TestCompareWithARealOrigin(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		key := r.URL.Query().Get("id")
		switch {
		case r.URL.Path != "/items" || !strings.HasPrefix(key, "key-") && key != "probe":
			t.Errorf("asked for %s", r.URL)
		case strings.HasSuffix(key, "1"):
			w.WriteHeader(http.StatusNotFound)
		case strings.HasSuffix(key, "2"):
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, "value of ", key)
		}
	}))
	defer server.Close()
	args := append([]string{"--combinations", "l1", "--policies", "fixed,swr", "--skew", "0", "--keys", "10",
		"--origin", server.URL + "/items?id={key}&token=secret", "--json", "-"}, quick...)
	code, stdout, stderr := bench(t.Context(), args...)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	rep := reportOf(t, stdout)
	for _, r := range rep.Rows {
		if r.Requests != 200 || r.OriginCalls == 0 || r.Failed < 5 || r.Failed > 50 {
			t.Errorf("got %+v", r)
		}
	}
	if o := rep.Environment.Origin; o.Kind != "url" || o.Does != server.URL+"/items" || strings.Contains(stdout, "secret") {
		t.Errorf("got %+v", o)
	}
	if asked.Load() == 0 {
		t.Error("it was not asked")
	}
}

func TestHTTPOriginAnswers(t *testing.T) {
	for url, want := range map[string]string{
		"http://h/a":                "http://h/a/x%2Fy",
		"http://h/a/?q=1":           "http://h/a/x%2Fy?q=1",
		"http://h/{key}/b?k={key}":  "http://h/x%2Fy/b?k=x%2Fy",
		"https://h:1?only=a&id=b/c": "https://h:1/x%2Fy?only=a&id=b/c",
	} {
		if got := (&httpOrigin{url: url}).of("x/y"); got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
	status := http.StatusOK
	body := "body"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	defer server.Close()
	o := settingsOf(t, "--origin", server.URL).newOrigin()
	defer o.close()
	v, err := o.load(t.Context(), "k")
	if err != nil || string(v[leastValue:]) != "body" {
		t.Errorf("got %q, %v", v, err)
	}
	if _, err := age("k", v); err != nil {
		t.Error(err)
	}
	body = strings.Repeat("x", maxValueSize+1)
	if _, err := o.load(t.Context(), "k"); err == nil {
		t.Error("an answer that is too large: no error")
	}
	body, status = "", http.StatusGone
	if _, err := o.load(t.Context(), "k"); !errors.Is(err, tier.ErrAbsent) {
		t.Errorf("410: got %v, want absent", err)
	}
	status = http.StatusTeapot
	if _, err := o.load(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "418") {
		t.Errorf("418: got %v", err)
	}
}
