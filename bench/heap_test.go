package main

import (
	"testing"

	"github.com/terracecache/terrace/tier"
)

// What must be on the heap for an entry is counted, and not a multiple of it.
func TestHeapPerEntry(t *testing.T) {
	const valueSize = 4096
	s := &settings{ValueSize: valueSize, TTL: tier.Forever}
	for _, test := range []struct {
		tiers       string
		least, most float64
	}{
		{"l1", valueSize + 100, valueSize + 600},
		{"l2", valueSize + 100, valueSize + 1000},
		{"l1+l2", valueSize + 200, valueSize + 1600}, // the value once: tiers share it
		{"l1+l3", valueSize + 100, valueSize + 600},
	} {
		tiers, err := parseCombination(test.tiers)
		if err != nil {
			t.Fatal(err)
		}
		c := combination{name: test.tiers, tiers: tiers}
		if tiers[len(tiers)-1] == "l3" {
			c.remote = &remote{}
		}
		got, err := heapPerEntry(t.Context(), s, c)
		if err != nil || got < test.least || got > test.most {
			t.Errorf("%s: got %.0f, %v; want %v to %v", test.tiers, got, err, test.least, test.most)
		}
	}
}

func TestHeapOfNoTierInMemoryIsNotKnown(t *testing.T) {
	got, err := heapPerEntry(t.Context(), &settings{ValueSize: 16}, combination{name: "l3", tiers: []string{"l3"}, remote: &remote{}})
	if got != -1 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
