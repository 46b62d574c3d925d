package storetest_test

import (
	"sync"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

func TestMapTracker(t *testing.T) {
	newSystem := func(testing.TB) storetest.TrackSystem {
		server := storetest.NewMapBytes()
		var mu sync.Mutex
		var clients []*storetest.MapBytes
		isCut := false
		all := func(cut bool, f func(*storetest.MapBytes)) func() {
			return func() {
				mu.Lock()
				defer mu.Unlock()
				isCut = cut
				for _, c := range clients {
					f(c)
				}
			}
		}
		return storetest.TrackSystem{
			Open: func(testing.TB) tier.Bytes {
				mu.Lock()
				defer mu.Unlock()
				c := server.Another()
				clients = append(clients, c)
				if isCut {
					c.CutTracking()
				}
				return storetest.NewFaultyBytes(c)
			},
			Cut: all(true, (*storetest.MapBytes).CutTracking), Restore: all(false, (*storetest.MapBytes).RestoreTracking),
			Within: 5 * time.Second,
		}
	}
	t.Run("in real time", func(t *testing.T) { storetest.TestTracker(t, newSystem) })
	t.Run("in virtual time", func(t *testing.T) { storetest.TestTrackerVirtual(t, newSystem) })
}
