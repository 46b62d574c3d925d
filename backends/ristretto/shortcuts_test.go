package ristretto_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/terracecache/terrace/backends/ristretto"
	"github.com/terracecache/terrace/tier"
)

func costsItself(_ int, e *tier.Entry[int]) int64 { return int64(e.Value()) }

// checkShortcuts checks that shortcuts keep nothing alive. It returns how many items they
// lead to.
func checkShortcuts[K comparable, V any](t *testing.T, s *ristretto.Store[K, V]) int {
	t.Helper()
	settled(t, s.Pending)
	items, gone := s.Shortcuts()
	if gone > 0 {
		t.Errorf("%d of %d shortcuts lead to items that are gone", gone, items)
	}
	if held := s.Usage().Entries; int64(items) > held {
		t.Errorf("%d shortcuts, %d entries", items, held)
	}
	return items
}

// TestShortcutsLeadToWhatIsHeld has keys set again that Ristretto holds, and lets them go in
// each way there is.
func TestShortcutsLeadToWhatIsHeld(t *testing.T) {
	const keys = 2000
	type letGo struct {
		most int64 // what may be left
		do   func(t *testing.T, s *ristretto.Store[int, int])
	}
	for name, letGo := range map[string]letGo{
		"Delete": {0, func(t *testing.T, s *ristretto.Store[int, int]) {
			for key := range keys {
				mustDelete(t, s, key)
			}
		}},
		"Clear": {0, func(t *testing.T, s *ristretto.Store[int, int]) {
			if err := s.Clear(ctx); err != nil {
				t.Error(err)
			}
			if n := s.Places(); n != 0 {
				t.Errorf("%d places are kept", n)
			}
		}},
		"Resize": {1, func(t *testing.T, s *ristretto.Store[int, int]) {
			if err := s.Resize(1); err != nil {
				t.Error(err)
			}
		}},
		"too costly": {0, func(t *testing.T, s *ristretto.Store[int, int]) {
			for key := range keys {
				mustSet(t, s, key, 3*keys)
			}
		}},
		"other cost": {keys, func(t *testing.T, s *ristretto.Store[int, int]) {
			for key := range keys {
				mustSet(t, s, key, 2)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, ristretto.Options[int, int]{MaxCost: 2 * keys, NumCounters: 20 * keys, Cost: costsItself})
			for round := range 3 {
				for key := range keys {
					mustSet(t, s, key, 1)
				}
				if items := checkShortcuts(t, s); items < keys/2 {
					t.Errorf("round %d: shortcuts to %d of %d keys", round, items, keys)
				}
			}
			letGo.do(t, s)
			checkShortcuts(t, s)
			if held := s.Usage().Entries; held > letGo.most {
				t.Errorf("%d entries are left, want at most %d", held, letGo.most)
			}
			for range 2 {
				for key := range keys {
					mustSet(t, s, key, 1)
					e := mustGet(t, s, key)
					if hasRoom := s.Usage().MaxCost > 1; e == nil && hasRoom || e != nil && e.Value() != 1 {
						t.Fatalf("Get right after Set of %d: %v", key, e)
					}
				}
				checkShortcuts(t, s)
			}
		})
	}
}

// TestShortcutsUnderWriters has what they lead to evicted, deleted and replaced while others
// write.
func TestShortcutsUnderWriters(t *testing.T) {
	const keys, room, writers = 600, 300, 8
	s := open(t, ristretto.Options[int, int]{MaxCost: room, NumCounters: 10 * keys, Cost: costsItself})
	for range 20 {
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 1))
				for range 300 {
					// One of them writes each key.
					key := r.IntN(keys/writers)*writers + w
					switch r.IntN(12) {
					case 0:
						mustDelete(t, s, key)
						if e := mustGet(t, s, key); e != nil {
							t.Errorf("Get right after Delete of %d: %v", key, e)
						}
					default:
						cost := 1 + r.IntN(20)/19
						mustSet(t, s, key, cost)
						if e := mustGet(t, s, key); e != nil && e.Value() != cost {
							t.Errorf("Get right after Set of %d: %v", key, e)
						}
					}
				}
			})
		}
		wg.Wait()
		checkShortcuts(t, s)
	}
}
