package sieve_test

import (
	"fmt"
	"testing"

	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

func TestConformance(t *testing.T) {
	for _, a := range admissions {
		for _, shards := range []int{1, 8} {
			t.Run(fmt.Sprint(a, shards), func(t *testing.T) {
				storetest.TestStoreWith(t, func(testing.TB) tier.Store[string, any] {
					return sieve.NewWith[string, any](sieve.Options{Capacity: 1000, Admission: a, Shards: shards})
				}, storetest.StoreOptions[any]{
					Values:  []any{nil, (*int)(nil), 0, false, "", []byte{}, []byte(nil), struct{}{}, map[string]int{}, "value"},
					Virtual: true,
				})
			})
		}
	}
	// With no room to speak of nothing older may show either.
	t.Run("tiny", func(t *testing.T) {
		storetest.TestStore(t, func(testing.TB) tier.Store[string, int] { return sieve.New[string, int](2) }, 0, 1)
	})
}
