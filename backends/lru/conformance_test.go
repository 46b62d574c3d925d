package lru_test

import (
	"testing"

	"github.com/terracecache/terrace/backends/internal/memtest"
)

func TestConformance(t *testing.T) {
	for _, e := range evictions {
		t.Run(e.String(), func(t *testing.T) {
			memtest.Conformance(t, newStore[string, any](e))
		})
	}
}
