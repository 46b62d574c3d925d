//go:build !race

package sieve_test

const raceEnabled = false
