package sieve_test

import (
	"testing"

	"github.com/terracecache/terrace/backends/internal/memtest"
)

func BenchmarkGet(b *testing.B) {
	for _, s := range beside[string, int]() {
		b.Run(s.name, func(b *testing.B) { memtest.BenchmarkGet(b, s.newStore) })
	}
}

func BenchmarkSet(b *testing.B) {
	for _, s := range beside[string, int]() {
		b.Run(s.name, func(b *testing.B) { memtest.BenchmarkSet(b, s.newStore) })
	}
}
