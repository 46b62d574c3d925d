package main

import (
	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/tier"
)

// newSieve makes the L1 of the rows "terrace-sieve…".
func newSieve[K comparable](capacity int) tier.Store[K, *payload] {
	return sieve.New[K, *payload](capacity)
}

var (
	terraceSieve    = terrace("terrace-sieve", newSieve[string])
	terraceSieveInt = terrace("terrace-sieve-int", newSieve[int])
)
