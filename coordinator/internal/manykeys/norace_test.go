//go:build !race

package manykeys_test

const keysLater = 1_000_000
