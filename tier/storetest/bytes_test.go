package storetest_test

import (
	"testing"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

func TestMapBytes(t *testing.T) {
	storetest.TestBytesWith(t, func(testing.TB) tier.Bytes { return storetest.NewMapBytes() }, storetest.BytesOptions{Virtual: true})
}

func TestMapBytesInRealTime(t *testing.T) {
	storetest.TestBytes(t, func(testing.TB) tier.Bytes { return storetest.NewMapBytes() })
}
