//go:build race

package lab_test

// seeds is how many seeds a distribution is told over: a fifth with the race detector,
// under which the whole takes a quarter of a minute. make test runs all without it.
const seeds = 40
