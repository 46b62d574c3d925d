//go:build !race

package lab_test

// seeds is how many seeds a distribution is told over.
const seeds = 200
