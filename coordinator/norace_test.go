//go:build !race

package coordinator_test

const keysLater = 1_000_000
