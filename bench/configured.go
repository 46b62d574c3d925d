package main

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

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
	sets := slices.Concat(d.sets, []string{name + ".limits.load_timeout=" + briefly})
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
