// Package policy says how long an answer lives and when it is loaded again:
// [Lifetime] gives each entry its times when it is stored, and a [Strategy] decides
// at each read what they mean. [Fixed], [StaleWhileRevalidate] and [XFetch] are
// ready; a type of one's own with one method does as well.
//
// It imports nothing of Terrace.
package policy

import "time"

// Strategy decides what a read does with the entry that it found. It is called on
// the reader's own goroutine, concurrently, at every read that finds an entry, so
// it must be fast, must not block and should not allocate.
type Strategy interface {
	Decide(Reading) Decision
}

// Reading is an entry's state at the moment of a read.
type Reading struct {
	// Age is the time since the load of the value began.
	Age time.Duration
	// FreshFor is the time until the entry turns stale. Zero or less: it is stale
	// since then. [Forever]: it never is.
	FreshFor time.Duration
	// StaleFor is the time left in which the entry may be served while a refresh
	// runs: FreshFor and the lifetime's StaleWhileRevalidate window together. Zero or
	// less: a stale entry is served only when a load fails.
	StaleFor time.Duration
	// LoadTime is how long the load of the value took. Zero when unknown.
	LoadTime time.Duration
}

// Decision is what a read does with the entry that it found.
type Decision uint8

const (
	// Serve answers with the entry.
	Serve Decision = iota
	// Refresh answers with the entry and loads a new one in the background. The
	// coordinator treats it as Load when the entry is stale and StaleFor is over.
	Refresh
	// Load makes the reader wait for a new value. The entry stays in reserve for
	// the case that the load fails.
	Load
)

// String returns the decision's name.
func (d Decision) String() string {
	switch d {
	case Serve:
		return "serve"
	case Refresh:
		return "refresh"
	case Load:
		return "load"
	default:
		return "unknown"
	}
}

// Validator is implemented by a strategy whose parameters can be wrong. A cache
// checks it before it uses the strategy.
type Validator interface {
	// Validate returns what is wrong with the strategy under the lifetime that it is
	// used with, or nil.
	Validate(Lifetime) error
}

// Named is implemented by a strategy that has a name for statistics and tables.
type Named interface {
	Name() string
}

// NameOf returns the strategy's own name, or "custom".
func NameOf(s Strategy) string {
	if n, ok := s.(Named); ok {
		return n.Name()
	}
	return "custom"
}
