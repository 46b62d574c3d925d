package ristretto

import (
	"testing"

	"github.com/terracecache/terrace/tier"
)

// Ristretto may let an item go at any moment: before it has a place, or before it is taken out.
func TestShortcutsDoNotLeadToWhatIsGone(t *testing.T) {
	const hash = 42
	var c shortcuts[string, int]
	item := func(state int32) *item[string, int] {
		it := newItem(tier.NewPair("key", 1, tier.Meta{}), 1)
		it.state.Store(state)
		return it
	}
	held := item(counted)
	c.keep(hash, held, 1, nil)
	if got := c.find(hash, "key"); got != held {
		t.Fatalf("find gives %p, want the item kept, %p", got, held)
	}
	held.state.Store(gone)
	if got := c.find(hash, "key"); got != nil {
		t.Error("an item that has gone is found until it is taken out")
	}
	c.forget(hash, held)
	for _, state := range []int32{uncounted, moving, gone} {
		c.keep(hash, item(state), 1, nil)
		for i := range c.line(hash).items {
			if c.line(hash).items[i].Load() != nil {
				t.Errorf("an item in state %d has a place", state)
			}
		}
	}
}
