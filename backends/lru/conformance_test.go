package lru_test

import (
	"fmt"
	"testing"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

func TestConformance(t *testing.T) {
	for _, e := range evictions {
		for _, shards := range []int{1, 7} {
			t.Run(fmt.Sprint(e, shards), func(t *testing.T) {
				storetest.TestStoreWith(t, func(testing.TB) tier.Store[string, any] {
					return lru.NewWith[string, any](lru.Options{Capacity: 1000, Eviction: e, Shards: shards})
				}, storetest.StoreOptions[any]{
					Values:  []any{nil, (*int)(nil), 0, false, "", []byte{}, []byte(nil), struct{}{}, map[string]int{}, "value"},
					Virtual: true,
				})
			})
		}
	}
	// With no room to speak of nothing older may show either.
	t.Run("tiny", func(t *testing.T) {
		storetest.TestStore(t, func(testing.TB) tier.Store[string, int] { return lru.New[string, int](2) }, 0, 1)
	})
}
