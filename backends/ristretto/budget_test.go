package ristretto_test

import (
	"testing"

	"github.com/terracecache/terrace/backends/internal/memtest"
	"github.com/terracecache/terrace/backends/ristretto"
)

func byBytes[V any](t *testing.T) memtest.Opener[V] {
	return func(maxBytes int64) (memtest.Store[string, V], func()) {
		s := ristretto.New(ristretto.Options[string, V]{MaxCost: maxBytes})
		return s, func() { settled(t, s.Pending) }
	}
}

func TestHeapIsWithinTheBudget(t *testing.T) {
	memtest.BytesInBudget(t, byBytes[[]byte](t))
	memtest.StringsInBudget(t, byBytes[string](t))
	memtest.RecordsInBudget(t, byBytes[*memtest.Record](t))
	memtest.MapsInBudget(t, byBytes[map[string]int](t))
}
