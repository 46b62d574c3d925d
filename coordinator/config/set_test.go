package config_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/coordinator/config"
)

const following = `caches:
  c:
    tiers:
      - {name: l1, backend: memory, eviction: EVICTION, capacity: 1000}
    lifetime: {ttl: 5m, jitter: 10%, stale_while_revalidate: 1m}
    refresh: {policy: fixed}
    limits: {flights: 100}
  other:
    tiers: [{name: l1, backend: sieve, capacity: 10}]
    lifetime: {ttl: 1m}
`

// file is a document on disk that a set follows.
type file struct {
	t    *testing.T
	path string
	text string
}

func newFile(t *testing.T, text string) *file {
	f := &file{t: t, path: filepath.Join(t.TempDir(), "caches.yaml"), text: text}
	f.write(text)
	return f
}

func (f *file) write(text string) {
	f.t.Helper()
	// As an editor does: the new file takes the place of the old.
	if err := os.WriteFile(f.path+"~", []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.path+"~", f.path); err != nil {
		f.t.Fatal(err)
	}
}

// edit replaces a part of the document, for good.
func (f *file) edit(old, new string) {
	f.t.Helper()
	if !strings.Contains(f.text, old) {
		f.t.Fatalf("there is no %q", old)
	}
	f.text = strings.Replace(f.text, old, new, 1)
	f.write(f.text)
}

func (f *file) open() (*config.Set, *coordinator.Cache[string, string]) {
	f.t.Helper()
	set, err := config.Open(f.path, config.Options{Env: env})
	if err != nil {
		f.t.Fatal(err)
	}
	c, err := config.BuildIn(set, "c", config.Code[string, string]{
		Load: func(_ context.Context, key string) (string, error) { return "of " + key, nil },
	})
	if err != nil {
		f.t.Fatal(err)
	}
	closeWith(f.t, c.Close)
	return set, c
}

func paths(changes []config.Change) string {
	var all []string
	for _, c := range changes {
		all = append(all, strings.TrimPrefix(c.Path, "caches."))
	}
	return strings.Join(all, " ")
}

// What is live is applied, the rest is named again and again, and a bad document
// changes nothing.
func TestReload(t *testing.T) {
	f := newFile(t, strings.Replace(following, "EVICTION", "sieve", 1))
	set, c := f.open()
	reload := func(applied, notLive string) config.Changes {
		t.Helper()
		changes, err := set.Reload()
		if err != nil {
			t.Fatal(err)
		}
		if got := paths(changes.Applied); got != applied {
			t.Errorf("applied %q, want %q", got, applied)
		}
		if got := paths(changes.NotLive); got != notLive {
			t.Errorf("not live %q, want %q", got, notLive)
		}
		if len(changes.Failed) > 0 {
			t.Errorf("failed: %v", changes.Failed)
		}
		return changes
	}
	if _, err := c.Get(ctx, "key"); err != nil {
		t.Fatal(err)
	}
	if changes := reload("", ""); !changes.None() {
		t.Errorf("a reload of the same: %+v", changes)
	}

	f.edit("policy: fixed", "policy: swr")
	reload("c.refresh.policy", "")
	if got := c.Stats().Policy; got != "swr" {
		t.Errorf("policy %s, want swr", got)
	}
	f.edit("capacity: 1000", "capacity: 500")
	f.edit("ttl: 5m, jitter: 10%, stale_while_revalidate: 1m", "ttl: 6m")
	f.edit("policy: swr", "policy: xfetch, beta: 2")
	f.edit("flights: 100", "flights: 50, load_timeout: 3s")
	reload("c.lifetime.jitter c.lifetime.stale_while_revalidate c.lifetime.ttl c.limits.flights c.limits.load_timeout c.refresh.beta c.refresh.policy c.tiers.l1.capacity", "")
	if s := c.Stats(); s.Policy != "xfetch" || s.Tiers[0].Usage.MaxEntries != 500 {
		t.Errorf("policy %s, capacity %d, want xfetch and 500", s.Policy, s.Tiers[0].Usage.MaxEntries)
	}
	if r, err := c.Lookup(ctx, "key"); err != nil || r.Tier != "l1" {
		t.Errorf("the entry from before: %+v, %v, want it from l1", r, err)
	}

	f.edit("eviction: sieve", "eviction: lru")
	f.edit("capacity: 500", "capacity: 400, ttl: 10s")
	for range 2 { // named until the process starts anew
		reload("", "c.tiers.l1.capacity c.tiers.l1.eviction c.tiers.l1.ttl")
	}
	f.edit("eviction: lru, ", "eviction: sieve, ")
	f.edit(", ttl: 10s", "")
	reload("c.tiers.l1.capacity", "")

	before := set.Document().String()
	for bad, why := range map[string]string{
		"policy: swr":                  "needs lifetime.stale_while_revalidate",
		"policy: xfetch, beta: lots":   "want a number",
		"policy: xfetch, betta: 1":     "did you mean beta?",
		"policy: xfetch}\n    x: {a: ": "", // not even YAML, or an unknown field
	} {
		f.write(strings.Replace(f.text, "policy: xfetch, beta: 2", bad, 1))
		_, err := set.Reload()
		if err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), f.path+":") {
			t.Errorf("%s: got %v, want %q with the file", bad, err, why)
		}
	}
	if got := set.Document().String(); got != before || c.Stats().Policy != "xfetch" {
		t.Errorf("after bad documents:\n%s\nwant\n%s", got, before)
	}
	f.write(strings.Replace(f.text, "  c:\n", "  d:\n", 1))
	reload("", "c d")
	f.write(f.text)
	reload("", "")

	// Tiers that come, go, change their names, their order or their backends wait.
	l1 := "- {name: l1, backend: memory, eviction: sieve, capacity: 400}"
	for _, test := range []struct{ text, notLive string }{
		{l1 + "\n      - {name: l2, backend: ristretto, capacity: 1000}", "c.tiers c.tiers.l2"},
		{strings.Replace(l1, "l1", "l0", 1), "c.tiers c.tiers.l0 c.tiers.l1"},
		{"- {name: l2, backend: redis, url: 'redis://127.0.0.1:1', prefix: 'a:'}", "c.tiers c.tiers.l1 c.tiers.l2"},
		{"- {name: l1, backend: redis, url: 'redis://127.0.0.1:1', prefix: 'a:'}", "c.tiers.l1.backend c.tiers.l1.capacity c.tiers.l1.eviction c.tiers.l1.prefix c.tiers.l1.url"},
	} {
		f.write(strings.Replace(f.text, l1, test.text, 1))
		for range 2 {
			reload("", test.notLive)
		}
	}
	f.write(f.text)
	reload("", "")

	// A cache that has not been built is built as the last good document says.
	f.edit("backend: sieve, capacity: 10", "backend: sieve, capacity: 20")
	reload("", "")
	other, err := config.BuildIn(set, "other", config.Code[string, int]{})
	if err != nil {
		t.Fatal(err)
	}
	closeWith(t, other.Close)
	if got := other.Stats().Tiers[0].Usage.MaxEntries; got != 20 {
		t.Errorf("built later: capacity %d, want 20", got)
	}
	if _, err := config.BuildIn(set, "other", config.Code[string, int]{}); err == nil {
		t.Error("a cache was built twice")
	}

	// A closed cache is no more of the set's.
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	f.edit("ttl: 6m", "ttl: 7m")
	reload("", "")
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Reload(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
}

// A capacity is live where the store can change it, and named where it cannot.
func TestCapacityIsLive(t *testing.T) {
	for eviction, can := range map[string]bool{"lru": true, "sieve": true, "tinylfu": true, "w-tinylfu": true, "2q": false, "arc": false} {
		t.Run(eviction, func(t *testing.T) {
			f := newFile(t, strings.Replace(following, "EVICTION", eviction, 1))
			set, c := f.open()
			for i := range 500 {
				if _, err := c.Get(ctx, fmt.Sprint(i)); err != nil {
					t.Fatal(err)
				}
			}
			f.edit("capacity: 1000", "capacity: 2000")
			changes, err := set.Reload()
			if err != nil {
				t.Fatal(err)
			}
			u := c.Stats().Tiers[0].Usage
			if got := max(u.MaxEntries, u.MaxCost); can && (got != 2000 || len(changes.Applied) != 1) || !can && (got != 1000 || len(changes.NotLive) != 1) {
				t.Errorf("capacity %d, changes %+v", got, changes)
			}
		})
	}
}

// Edits under load lose no entry, fail no read and no load, and each read is one of
// its cache's own values.
func TestWatchUnderLoad(t *testing.T) {
	f := newFile(t, strings.Replace(following, "EVICTION", "sieve", 1))
	set, c := f.open()
	ctx, stop := context.WithCancel(ctx)
	reports := make(chan config.Changes)
	refusals := make(chan error)
	var watching sync.WaitGroup
	watching.Go(func() {
		_ = config.Watch(ctx, set, config.WatchOptions{Every: time.Millisecond, Report: func(changes config.Changes, err error) {
			if err != nil {
				refusals <- err
				return
			}
			reports <- changes
		}})
	})
	const keys = 200
	for i := range keys {
		if _, err := c.Get(ctx, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	loads := c.Stats().LoaderCalls
	var reading atomic.Bool
	reading.Store(true)
	var readers sync.WaitGroup
	for g := range 4 {
		readers.Go(func() {
			for i := g; reading.Load(); i++ {
				key := fmt.Sprint(i % keys)
				if v, err := c.Get(ctx, key); err != nil || v != "of "+key {
					t.Errorf("Get(%s) = %q, %v", key, v, err)
					return
				}
			}
		})
	}
	await := func(what string) (config.Changes, error) {
		t.Helper()
		select {
		case changes := <-reports:
			return changes, nil
		case err := <-refusals:
			return config.Changes{}, err
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: no report", what)
			return config.Changes{}, nil
		}
	}
	template := f.text
	policies := []string{"swr", "xfetch", "fixed"}
	for i := range 30 {
		text := strings.Replace(template, "policy: fixed", "policy: "+policies[i%3], 1)
		text = strings.Replace(text, "flights: 100", fmt.Sprintf("flights: %d", 101+i), 1)
		text = strings.Replace(text, "capacity: 1000", fmt.Sprintf("capacity: %d", 900+i), 1)
		f.write(text)
		changes, err := await("an edit")
		if got := paths(changes.Applied); err != nil || got != "c.limits.flights c.refresh.policy c.tiers.l1.capacity" || len(changes.Failed)+len(changes.NotLive) > 0 {
			t.Fatalf("edit %d: %+v, %v", i, changes, err)
		}
		if got := c.Stats(); got.Policy != policies[i%3] || got.Tiers[0].Usage.MaxEntries != int64(900+i) {
			t.Errorf("edit %d: policy %s, capacity %d", i, got.Policy, got.Tiers[0].Usage.MaxEntries)
		}
		if i%10 != 9 {
			continue
		}
		f.write(strings.Replace(text, "tiers:", "teirs:", 1))
		if _, err := await("a bad document"); err == nil || !strings.Contains(err.Error(), "did you mean tiers?") {
			t.Errorf("a bad document: %v", err)
		}
		f.write(text)
		if changes, err := await("the good one again"); err != nil || !changes.None() {
			t.Errorf("the good one again: %+v, %v", changes, err)
		}
	}
	reading.Store(false)
	readers.Wait()
	stop()
	watching.Wait()
	if got := c.Stats().LoaderCalls; got != loads {
		t.Errorf("%d keys were loaded again: entries were lost", got-loads)
	}
}
