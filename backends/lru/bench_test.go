package lru_test

import (
	"testing"

	"github.com/terracecache/terrace/backends/internal/memtest"
)

func BenchmarkGet(b *testing.B) {
	for _, e := range evictions {
		b.Run(e.String(), func(b *testing.B) { memtest.BenchmarkGet(b, newStore[string, int](e)) })
	}
}

func BenchmarkSet(b *testing.B) {
	for _, e := range evictions {
		b.Run(e.String(), func(b *testing.B) { memtest.BenchmarkSet(b, newStore[string, int](e)) })
	}
}
