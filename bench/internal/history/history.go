// Package history checks what several processes did with one cache, after the event: each
// operation with its begin and end, and what happened to the processes meanwhile.
//
// Each key has one truth at its origin, a version that grows. A writer gives the origin the
// next version and then sets, deletes or expires the key in the cache, so that whatever is
// read or loaded after that has this version or a later one. Sets of one key do not overlap
// with other writes of it, or the last of them would not be the newest. All times are of one
// clock, in nanoseconds.
package history

import "time"

// Kind is what an operation did.
type Kind string

// The kinds of operations.
const (
	Get    Kind = "get"
	Set    Kind = "set"
	Delete Kind = "delete"
	Expire Kind = "expire"
	Load   Kind = "load" // of a loader that some Get waits for
)

// Op is an operation of a process on a key.
type Op struct {
	Process int   `json:"p"`
	Key     int   `json:"k"`
	Kind    Kind  `json:"o"`
	Version int   `json:"v"` // that was read or loaded, or that the origin was given before
	Begin   int64 `json:"b"` // of a write: before the origin is given the version
	End     int64 `json:"e"`
	Failed  bool  `json:"f,omitempty"` // a read without an answer, or a write that did nothing
	Missed  bool  `json:"m,omitempty"` // a write that the shared tier has missed; it is tried again
}

func (o *Op) writes() bool { return o.Kind == Set || o.Kind == Delete || o.Kind == Expire }

// Sample is what a process's cache said of itself at some time from Begin to End.
type Sample struct {
	Begin   int64  `json:"b"`
	End     int64  `json:"e"`
	Pending int    `json:"p,omitempty"` // writes that the shared tier has missed
	Lost    bool   `json:"l,omitempty"` // the bus
	Gaps    uint64 `json:"g,omitempty"` // in what came over the bus, since the beginning
}

// Span is a time from Begin to End.
type Span struct {
	Begin int64 `json:"b"`
	End   int64 `json:"e"`
}

// Process is what happened to a process.
type Process struct {
	Samples  []Sample `json:"samples"`   // in order
	Stalls   []Span   `json:"stalls"`    // times in which it was not run
	BusDown  []Span   `json:"bus_down"`  // times in which the bus was out of its reach, with what it may take to be back
	TierDown []Span   `json:"tier_down"` // the same of the shared tier
}

// History is all that is known of a run.
type History struct {
	Ops       []Op      `json:"ops"`
	Processes []Process `json:"processes"`
	Stalls    []Span    `json:"stalls"` // times in which what all need was not run: server, origin, proxies
}

// Promise is what the processes' caches promise.
type Promise struct {
	// Keep is how long a process may go on reading what others have overwritten, whatever
	// happens to the bus: the TTL of its tiers in memory, and what a look-up under way may
	// take. It counts from when this process has itself told the shared tier all it had
	// to, as it answers with that until then. Zero: no such bound.
	Keep time.Duration
	// Bus: there is one.
	Bus bool
	// Converge is how long it may while the bus works.
	Converge time.Duration
	// Clamp is how long it may, counted over a time in which it knows that the bus is lost
	// and can read the shared tier.
	Clamp time.Duration
	// Notice is what a process may take from counting a gap to having dropped what it held.
	Notice time.Duration
	// Storing is how long a load that has returned may take to be stored.
	Storing time.Duration
}

// Operations counts the operations that are not loads.
func (h *History) Operations() (n int) {
	for i := range h.Ops {
		if h.Ops[i].Kind != Load {
			n++
		}
	}
	return n
}
