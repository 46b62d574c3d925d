package memtest

import (
	"fmt"
	"testing"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// Conformance runs the suite of all stores, with one shard and with several, and with
// so little room that what was just set is gone soon.
func Conformance(t *testing.T, newStore New[string, any]) {
	for _, size := range []Size{{1000, 1}, {1000, 8}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			storetest.TestStoreWith(t, func(testing.TB) tier.Store[string, any] { return newStore(size) }, storetest.StoreOptions[any]{
				Values:  []any{nil, (*int)(nil), 0, false, "", []byte{}, []byte(nil), struct{}{}, map[string]int{}, "value"},
				Virtual: true,
			})
		})
	}
	t.Run("tiny", func(t *testing.T) {
		storetest.TestStore(t, func(testing.TB) tier.Store[string, any] { return newStore(Size{Capacity: 2}) }, 0, 1)
	})
}
