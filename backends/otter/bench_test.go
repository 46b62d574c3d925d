package otter_test

import (
	"testing"

	"github.com/terracecache/terrace/backends/internal/memtest"
)

func BenchmarkGet(b *testing.B) {
	b.Run("entries", func(b *testing.B) { memtest.BenchmarkGet(b, byEntries[string, int]) })
	b.Run("cost", func(b *testing.B) { memtest.BenchmarkGet(b, byCost[string, int]) })
}

func BenchmarkSet(b *testing.B) {
	b.Run("entries", func(b *testing.B) { memtest.BenchmarkSet(b, byEntries[string, int]) })
	b.Run("cost", func(b *testing.B) { memtest.BenchmarkSet(b, byCost[string, int]) })
}
