// Package trace reads recorded sequences of cache requests, in the formats in which they
// are published, packed or not. It streams: what it holds does not grow with the trace.
package trace

// Op is what a request does.
type Op uint8

// The operations.
const (
	Read   Op = iota // asks for the key
	Write            // writes it
	Delete           // removes it
)

// Request is one access of a trace.
type Request struct {
	// Key is the number that the trace has, or the 64-bit hash of a key that is text
	// (xxHash). Two of n different texts meet with a probability of n²/2^65: one in
	// 370,000 for ten million of them, one in 37 for a billion.
	Key uint64
	// Size is that of the object in bytes, where [Fields.Sizes].
	Size int64
	// Cost is what a miss costs, in the trace's own unit and not below zero, where
	// [Fields.Costs].
	Cost float64
	// Time is when it came, in seconds since whatever the trace counts from, where
	// [Fields.Times]. It may be less than that of the request before.
	Time float64
	// Op is what is done; always [Read] unless [Fields.Ops].
	Op Op
}

// Fields says what the requests of a trace have beside their keys.
type Fields struct{ Sizes, Costs, Ops, Times bool }
