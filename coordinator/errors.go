package coordinator

import (
	"errors"
	"fmt"
	"strings"

	"github.com/terracecache/terrace/tier"
)

var (
	// ErrAbsent is [tier.ErrAbsent]: the origin has no value for the key.
	ErrAbsent = tier.ErrAbsent

	// ErrClosed is [tier.ErrClosed]: the cache has been closed.
	ErrClosed = tier.ErrClosed

	// ErrMiss says that no tier has a usable entry, and that there was no loader to
	// ask, or none was to be asked.
	ErrMiss = errors.New("terrace: miss")

	// ErrLoadTimeout says that a load took longer than Limits.LoadTimeout. What it
	// returns later is not stored.
	ErrLoadTimeout = errors.New("terrace: load timed out")

	// ErrSaturated says that as many flights as Limits.Flights, or as many loads as
	// Limits.Loads, are under way, that there was no stale value to answer with, and
	// that the wait for a turn ended.
	ErrSaturated = errors.New("terrace: too many flights under way")

	// ErrCycle says that a loader asked, through other loaders or by itself, for the
	// key that it is loading, and would have waited for itself.
	ErrCycle = errors.New("terrace: loaders wait for each other")

	// ErrGoexit says that a loader, or a store, ended its goroutine with runtime.Goexit.
	ErrGoexit = errors.New("terrace: a loader or store called runtime.Goexit")

	// ErrSkipped says that a tier was left alone because it has not answered of late.
	ErrSkipped = errors.New("terrace: tier skipped: it has not answered of late")

	// ErrNotModified says that a loader answered "not modified" although it was given
	// no entry that could be meant.
	ErrNotModified = errors.New("terrace: loader answered not modified without a previous entry")
)

// PanicError is a panic of a loader, or of other code of the user's that ran in a
// flight, turned into an error for all who waited.
type PanicError struct {
	// Value is what the code panicked with.
	Value any
	// Stack is the stack of the panic, as runtime/debug.Stack formats it.
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("terrace: panic in a flight: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// CycleError is an [ErrCycle] with the way round.
type CycleError struct {
	// Path holds "cache: key" for each load, from the one that would have waited to
	// the one that it would have waited for, which is the same.
	Path []string
}

func (e *CycleError) Error() string {
	return ErrCycle.Error() + ": " + strings.Join(e.Path, " -> ")
}

// Is makes errors.Is(err, ErrCycle) hold.
func (e *CycleError) Is(target error) bool { return target == ErrCycle }

// TierError is the failure of one tier.
type TierError struct {
	// Tier is the tier's name.
	Tier string
	// Op is what was being done: "get", "set", "delete", "expire", "clear", "close".
	Op string
	// Err is the store's error.
	Err error
}

func (e *TierError) Error() string {
	return fmt.Sprintf("terrace: %s in tier %q: %v", e.Op, e.Tier, e.Err)
}

// Unwrap returns the store's error.
func (e *TierError) Unwrap() error { return e.Err }

// WriteError tells in which tiers a Set, Delete, Expire or Clear failed. The other
// tiers have it, and readers in this process see it everywhere. After a Set, Delete
// or Expire the failed tiers are tried again in the background until they have it or
// it no longer matters.
type WriteError struct {
	// Tiers holds the failures, from the bottom tier up.
	Tiers []*TierError
}

func (e *WriteError) Error() string {
	parts := make([]string, len(e.Tiers))
	for i, t := range e.Tiers {
		parts[i] = t.Error()
	}
	return strings.Join(parts, "; ")
}

// orNil returns the error as one that is nil when there is none.
func (e *WriteError) orNil() error {
	if e == nil {
		return nil
	}
	return e
}

// Unwrap returns the failures.
func (e *WriteError) Unwrap() []error {
	errs := make([]error, len(e.Tiers))
	for i, t := range e.Tiers {
		errs[i] = t
	}
	return errs
}
