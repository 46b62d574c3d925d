package otter_test

import (
	"testing"

	"github.com/terracecache/terrace/backends/internal/memtest"
	"github.com/terracecache/terrace/backends/otter"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

func TestConformance(t *testing.T) {
	memtest.Conformance(t, byEntries[string, any])
	values := []any{nil, (*int)(nil), 0, false, "", []byte{}, []byte(nil), struct{}{}, map[string]int{}, "value"}
	for name, o := range map[string]otter.Options[string, any]{
		"by bytes": {MaxCost: 1 << 20},
		"no room":  {MaxCost: 3, Cost: func(string, *tier.Entry[any]) int64 { return 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			newStore := func(testing.TB) tier.Store[string, any] { return otter.New(o) }
			storetest.TestStoreWith(t, newStore, storetest.StoreOptions[any]{Values: values, Virtual: true})
			t.Run("in real time", func(t *testing.T) { storetest.TestStore(t, newStore, values...) })
		})
	}
	large := make([]byte, 1<<20)
	storetest.TestStoreWith(t, func(testing.TB) tier.Store[string, []byte] {
		return otter.New(otter.Options[string, []byte]{MaxCost: 1 << 20})
	}, storetest.StoreOptions[[]byte]{TooLarge: &large, Values: [][]byte{nil, {}, {0}}, Virtual: true})
}
