package storetest_test

import (
	"testing"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

func TestMap(t *testing.T) {
	newMap := func(testing.TB) tier.Store[string, any] { return storetest.NewMap[string, any]() }
	values := []any{nil, (*int)(nil), 0, false, "", []byte{}, []byte(nil), struct{}{}, map[string]int{}, "value"}
	storetest.TestStoreWith(t, newMap, storetest.StoreOptions[any]{Values: values, Virtual: true})
	t.Run("in real time", func(t *testing.T) { storetest.TestStore(t, newMap, values...) })
}
