//go:build race

package manykeys_test

// keysLater is fewer than a million under the race detector: each is loaded by a goroutine,
// and ThreadSanitizer crashes in a process that has had about a million and a half of them.
const keysLater = 100_000
