package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/tier"
)

// Set is a file and the caches that were built of it. When the file changes, [Set.Reload]
// or [Watch] apply to the caches what can change while they run. All methods may be
// called concurrently.
type Set struct {
	path string
	o    Options

	mu      sync.Mutex
	running *Document // what the caches run
	caches  map[string]live
	seen    [sha256.Size]byte // of the content that was applied or refused last
}

// live is a running cache of any types.
type live interface {
	CheckChange(coordinator.Change) error
	Reconfigure(coordinator.Change) error
	Resize(tier string, capacity int64) error
}

// Open reads a file for caches that follow its changes.
func Open(path string, o Options) (*Set, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	doc, err := Parse(path, data, o)
	if err != nil {
		return nil, err
	}
	return &Set{path: path, o: o, running: doc, caches: make(map[string]live), seen: sha256.Sum256(data)}, nil
}

// String returns the document's.
func (s *Set) String() string { return s.Document().String() }

// GoString is String, for %#v.
func (s *Set) GoString() string { return s.String() }

// Document returns what the caches run: the last document that was applied, but for
// what cannot change while they run.
func (s *Set) Document() *Document {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// BuildIn is [Build] of the set's document for a cache that follows its changes, until
// it is closed. A cache can be built once.
func BuildIn[K comparable, V any](s *Set, name string, code Code[K, V]) (*coordinator.Cache[K, V], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.caches[name] != nil {
		return nil, fmt.Errorf("config: the cache %q has been built already", name)
	}
	c, err := Build(s.running, name, code)
	if err != nil {
		return nil, err
	}
	s.caches[name] = c
	return c, nil
}

// Reload reads the file again and applies what can change while the caches run. With
// an error, which says why, all stay as they were. It is what a handler of SIGHUP
// calls.
func (s *Set) Reload() (Changes, error) {
	data, err := os.ReadFile(s.path)
	if err != nil {
		return Changes{}, fmt.Errorf("config: reload: %w", err)
	}
	return s.apply(data)
}

func (s *Set) apply(data []byte) (changes Changes, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if recover() != nil { // of what somebody has registered
			err = fmt.Errorf("config: %s: panicked while it was applied", s.path)
		}
	}()
	s.seen = sha256.Sum256(data)
	next, err := Parse(s.path, data, s.o)
	if err != nil {
		return Changes{}, err
	}
	return s.change(next)
}

// Changes are what a new version of a document has come to.
type Changes struct {
	// Applied have been applied.
	Applied []Change
	// NotLive cannot change while the caches run, and wait until the process starts
	// anew.
	NotLive []Change
	// Failed could not be applied; the reason is in Err.
	Failed []Change
	// Warnings are those of the new document.
	Warnings []Fault
}

// None reports whether nothing has changed.
func (c Changes) None() bool { return len(c.Applied)+len(c.NotLive)+len(c.Failed) == 0 }

// Change is one field that is not as it was.
type Change struct {
	// Path leads to the field, such as "caches.products.lifetime.ttl".
	Path string
	// Was and Is are its values; empty where it is not there, "(hidden)" where it is a
	// secret.
	Was, Is string
	// Err says why it could not be applied, or why it is not live.
	Err error
}

// String returns the change as one line.
func (c Change) String() string {
	s := fmt.Sprintf("%s: %s → %s", c.Path, orNone(c.Was), orNone(c.Is))
	if c.Err != nil {
		s += ": " + c.Err.Error()
	}
	return s
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

var errNotBuilt = errors.New("this process has not built the cache")

var errNotLive = errors.New("not while the cache runs: it waits until the process starts anew")

// change applies a document: what can be told to be wrong before keeps all of it from
// being applied.
func (s *Set) change(next *Document) (Changes, error) {
	todo := make(map[string]coordinator.Change)
	for name, c := range s.caches {
		is := next.spec.Caches[name]
		if is == nil {
			continue
		}
		change, err := is.change(next.registry)
		if err == nil {
			err = c.CheckChange(change)
		}
		if errors.Is(err, coordinator.ErrClosed) {
			delete(s.caches, name)
			continue
		}
		if err != nil {
			return Changes{}, fmt.Errorf("config: %s: %w", s.path, err)
		}
		todo[name] = change
	}
	changes := Changes{Warnings: next.Warnings()}
	running := next.clone() // caches that have not been built are built as it says
	for name, c := range s.caches {
		was, is := s.running.spec.Caches[name], next.spec.Caches[name]
		merged := was.clone()
		running.spec.Caches[name] = merged
		if is == nil {
			changes.NotLive = append(changes.NotLive, Change{Path: joinPath("caches", name), Was: "there", Err: errNotLive})
			continue
		}
		s.changeCache(c, todo[name], merged, differences(name, was, is), is, &changes)
	}
	for _, name := range next.Names() {
		if s.running.spec.Caches[name] == nil && s.caches[name] == nil {
			changes.NotLive = append(changes.NotLive, Change{Path: joinPath("caches", name), Is: "there", Err: errNotBuilt})
		}
	}
	for _, all := range [][]Change{changes.Applied, changes.NotLive, changes.Failed} {
		slices.SortFunc(all, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	}
	s.running = running
	return changes, nil
}

// changeCache applies to one cache what can change, and notes in merged what has.
func (s *Set) changeCache(c live, change coordinator.Change, merged *cacheSpec, all []difference, is *cacheSpec, changes *Changes) {
	reconfigured := sync.OnceValue(func() error { // once, for all its fields
		err := c.Reconfigure(change)
		if err == nil {
			merged.Lifetime, merged.Refresh, merged.Limits = is.Lifetime, is.Refresh, is.Limits
		}
		return err
	})
	for _, d := range all {
		result := Change{Path: d.path, Was: d.was, Is: d.is}
		switch {
		case d.tier != "" && d.live:
			t := is.tier(d.tier)
			if result.Err = t.resize(merged.tier(d.tier), c); result.Err == nil {
				merged.tier(d.tier).Capacity = t.Capacity
			}
		case d.live:
			result.Err = reconfigured()
		default:
			result.Err = errNotLive
		}
		switch {
		case result.Err == nil:
			changes.Applied = append(changes.Applied, result)
		case errors.Is(result.Err, errNotLive), errors.Is(result.Err, tier.ErrNotResizable):
			changes.NotLive = append(changes.NotLive, result)
		default:
			changes.Failed = append(changes.Failed, result)
		}
	}
}

// resize changes the capacity of a running tier.
func (t *tierSpec) resize(was *tierSpec, c live) error {
	sameUnit := t.Capacity.given() && was.Capacity.given() && (t.Capacity.bytes > 0) == (was.Capacity.bytes > 0)
	if !sameUnit || t.eviction() != was.eviction() {
		return errNotLive // another unit, or another store
	}
	return c.Resize(string(t.Name), t.Capacity.amount())
}

// change returns the settings as a change of a running cache.
func (c *cacheSpec) change(r *Registry) (coordinator.Change, error) {
	lifetime, limits := c.Lifetime.lifetime(), c.Limits.limits()
	strategy, err := c.Refresh.strategy(r)
	return coordinator.Change{Refresh: strategy, Lifetime: &lifetime, Limits: &limits}, err
}

// Forget ends what ties a cache to the set, such as before it is closed and built anew.
func (s *Set) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.caches, name)
}
