package storetest_test

import (
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

func TestBusHub(t *testing.T) {
	newSystem := func(testing.TB) storetest.BusSystem {
		hub := storetest.NewBusHub()
		return storetest.BusSystem{
			Open: func(testing.TB) tier.Bus { return hub.Open() },
			Cut:  hub.Cut, Restore: hub.Restore,
			Within: 5 * time.Second,
		}
	}
	t.Run("in real time", func(t *testing.T) { storetest.TestBus(t, newSystem) })
	t.Run("in virtual time", func(t *testing.T) { storetest.TestBusVirtual(t, newSystem) })
}
