package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/coordinator/config"
)

// configured is a cache of a document. In servers its keys lie behind the document's
// prefix, which users with restricted rights need, and behind a mark that no other row,
// run or program has: so none gets another's entries, and what production keeps under
// the same prefix is neither read nor written.
type configured struct {
	doc  *document
	name string // of the cache
	// brief is the document with loads that take no time, for a cache that only
	// deletes: what it leaves in place of a deleted key is gone in a second or two
	// instead of the time that a load may take.
	brief *config.Document
	mark  string
	// label is the cache's name, with the file's where there are several.
	label string

	measured atomic.Pointer[coordinator.Cache[string, []byte]] // while it is open
	failed   atomic.Uint64                                     // calls of its tiers, as last seen
}

// briefly is a load timeout for caches that do not load.
const briefly = "1ms"

func newConfigured(d *document, name string, several bool) *configured {
	c := &configured{doc: d, name: name, mark: newPrefix(), label: name, brief: d.Document}
	if several {
		c.label = d.name + ": " + name
	}
	sets := append(d.sets[:len(d.sets):len(d.sets)], name+".limits.load_timeout="+briefly)
	if brief, err := config.Parse(d.name, d.data, config.Options{Set: sets}); err == nil {
		c.brief = brief
	}
	return c
}

// build makes the cache, or one of the brief document. It logs nothing: what goes wrong
// is found in its statistics.
func (c *configured) build(d *config.Document, load coordinator.Loader[string, []byte]) (*coordinator.Cache[string, []byte], error) {
	return config.Build(d, c.name, config.Code[string, []byte]{
		Load:   load,
		Key:    func(key string) string { return c.mark + key },
		Logger: slog.New(slog.DiscardHandler),
	})
}

// contender returns the cache as what a row measures.
func (c *configured) contender() *contender {
	return &contender{
		label:  c.label,
		named:  row{File: c.doc.name, Cache: c.name},
		remote: c.server(c.probeMeasured),
		open: func(o *origin) (*coordinator.Cache[string, []byte], error) {
			cache, err := c.build(c.doc.Document, o.load)
			if err == nil {
				c.measured.Store(cache)
			}
			return cache, err
		},
		clear:    c.clear,
		describe: describe,
	}
}

// server is what answers for all of the cache's servers.
func (c *configured) server(probe func(context.Context) error) *remote {
	return &remote{label: "a server of the cache " + c.label, probe: probe}
}

// describe names what the cache runs.
func describe(r *row, stats coordinator.Stats) {
	r.Policy = stats.Policy
	names := make([]string, len(stats.Tiers))
	for i, t := range stats.Tiers {
		names[i] = t.Name
		r.Tiers = append(r.Tiers, tierName{t.Name, t.Eviction})
	}
	r.Combination = strings.Join(names, "+")
}

// cacheName is the cache's name, with that of its file where it is asked for.
func (r *row) cacheName(withFile bool) string {
	if withFile {
		return r.File + ": " + r.Cache
	}
	return r.Cache
}

// tierNames are the tiers with their evictions.
func (r *row) tierNames() string {
	names := make([]string, len(r.Tiers))
	for i, t := range r.Tiers {
		names[i] = t.Name
		if t.Eviction != "" {
			names[i] += ":" + t.Eviction
		}
	}
	return strings.Join(names, " ")
}

// probe returns an error that names the tier when a server does not answer. With
// several servers in a tier the keys come to all of them, but for bad luck: a key is on
// one.
func (c *configured) probe(ctx context.Context) error {
	cache, err := c.build(c.brief, nil)
	if err != nil {
		return err
	}
	defer closeSoon(ctx, cache)
	// A first connection may take longer than the tier's own timeout allows a call.
	for {
		err := remove(ctx, cache, probeKeys(128))
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// probeMeasured asks the servers of the cache that is being measured, if its tiers have
// failed since it was called last.
func (c *configured) probeMeasured(ctx context.Context) error {
	cache := c.measured.Load()
	if cache == nil {
		return nil
	}
	failed := uint64(0)
	for _, t := range cache.Stats().Tiers {
		failed += t.Errors
	}
	if c.failed.Swap(failed) == failed {
		return nil
	}
	err := c.probe(ctx)
	if err != nil {
		c.failed.Store(math.MaxUint64) // to be asked again in any case
	}
	return err
}

// closeSoon closes a cache without a wait for what it tries again.
func closeSoon(ctx context.Context, cache *coordinator.Cache[string, []byte]) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
	defer cancel()
	_ = cache.Close(ctx)
}

func probeKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("probe-", i)
	}
	return keys
}

// clear removes the keys from the servers. It asks for each by name, so that nothing else
// there is looked at, let alone removed.
func (c *configured) clear(ctx context.Context, keys []string) error {
	within := clearWithin
	if ctx.Err() != nil {
		within = clearSoon
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	cache, err := c.build(c.brief, nil)
	if err != nil {
		return err
	}
	defer closeSoon(ctx, cache)
	for _, t := range cache.Stats().Tiers {
		if t.Eviction == "" { // not in memory
			return remove(ctx, cache, keys)
		}
	}
	return nil
}

// removers is how many keys are removed at once.
const removers = 64

// remove deletes the keys. It stops at the first that cannot be, with an error that
// names the tier.
func remove(ctx context.Context, cache *coordinator.Cache[string, []byte], keys []string) error {
	var next atomic.Int64
	var first atomic.Pointer[error]
	var working sync.WaitGroup
	for range min(removers, len(keys)) {
		working.Go(func() {
			for first.Load() == nil {
				i := int(next.Add(1) - 1)
				if i >= len(keys) {
					return
				}
				if err := cache.Delete(ctx, keys[i]); err != nil {
					err = ofTier(err)
					first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	working.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

// ofTier shortens the error of a write to that of the first tier that failed.
func ofTier(err error) error {
	if write := (*coordinator.WriteError)(nil); errors.As(err, &write) && len(write.Tiers) > 0 {
		return fmt.Errorf("tier %s: %w", write.Tiers[0].Tier, write.Tiers[0].Err)
	}
	return err
}

// compareDocuments is compare for the caches of documents.
func compareDocuments(ctx context.Context, s *settings, stdin io.Reader, stdout, stderr io.Writer) error {
	out, err := openOutput(s.JSON, stdout)
	if err != nil {
		return err
	}
	defer out.discard()
	documents, err := readDocuments(ctx, s.Config, stdin)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if faults := parseDocuments(documents, s.Set); len(faults) > 0 {
		return faults
	}
	all := configuredOf(documents)
	if err := buildable(ctx, all); err != nil {
		return err
	}
	for _, c := range all {
		// Before anything is measured, so that it costs nobody a run.
		err := c.server(c.probe).answers(ctx)
		if ctx.Err() != nil {
			return errInterrupted
		}
		if err != nil {
			return fmt.Errorf("--config: %w", err)
		}
	}
	rep := &report{Environment: newEnvironment(ctx, s, nil), Rows: []row{}}
	rep.Environment.describe(documents)
	var groups []group
	for _, c := range all {
		groups = append(groups, group{name: c.label, contenders: []*contender{c.contender()}})
	}
	return rep.measure(ctx, s, groups, out, stderr)
}

// configuredOf returns the caches of the documents, in their order.
func configuredOf(documents []*document) []*configured {
	var all []*configured
	for _, d := range documents {
		for _, name := range d.Names() {
			all = append(all, newConfigured(d, name, len(documents) > 1))
		}
	}
	return all
}

// buildable returns what of the caches cannot be built for keys of text and values of
// bytes: all faults, or else the first error of another kind.
func buildable(ctx context.Context, all []*configured) error {
	var faults config.Faults
	var other error
	for _, c := range all {
		cache, err := c.build(c.doc.Document, nil)
		if err == nil {
			_ = cache.Close(context.WithoutCancel(ctx)) // it has done nothing
			continue
		}
		if some := config.Faults(nil); errors.As(err, &some) {
			faults = append(faults, some...)
		} else if other == nil {
			other = fmt.Errorf("--config: %s: %w", c.label, err)
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return other
}

// describe tells what the documents say, and what is unwise in them.
func (e *environment) describe(documents []*document) {
	for _, d := range documents {
		e.Config = append(e.Config, documentOfRows{File: d.name, Caches: strings.Split(d.String(), "\n")})
		for _, w := range d.Warnings() {
			e.Notes = append(e.Notes, warning(w))
		}
	}
}
