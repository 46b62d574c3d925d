//go:build race

package memtest

// Race tells that the race detector watches, which slows all down tenfold.
const Race = true
