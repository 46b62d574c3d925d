//go:build race

package sieve_test

// raceEnabled tells tests that would take minutes under the race detector, and that
// have nothing to show it.
const raceEnabled = true
