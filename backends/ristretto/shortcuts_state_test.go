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

// When there are to be more lines, what is held moves there, and what has gone meanwhile does not
// stay.
func TestShortcutsMove(t *testing.T) {
	var c shortcuts[int, int]
	hashOf := func(key int) uint64 { return uint64(key) * 0x9E3779B97F4A7C15 }
	var items []*item[int, int]
	keep := func(key int, entries int64) {
		it := newItem(tier.NewPair(key, 1, tier.Meta{}), 1)
		it.state.Store(counted)
		items = append(items, it)
		c.keep(hashOf(key), it, entries, hashOf)
	}
	for key := range 5 {
		keep(key, 1)
	}
	items[3].state.Store(gone) // and is not taken out, as if it went while it moves
	keep(5, 50*shards)
	if n := len(*c.lines.Load()); n != 16 {
		t.Fatalf("%d lines for 50 items in each shard", n)
	}
	for key, it := range items {
		if got := c.find(hashOf(key), key); (got == it) != (key != 3) {
			t.Errorf("key %d: found %p, its item is %p", key, got, it)
		}
	}
	for i := range *c.lines.Load() {
		for j := range (*c.lines.Load())[i].items {
			if (*c.lines.Load())[i].items[j].Load() == items[3] {
				t.Error("what has gone has a place")
			}
		}
	}
}
