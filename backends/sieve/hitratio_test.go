package sieve_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/terracecache/terrace/backends/internal/memtest"
	"github.com/terracecache/terrace/backends/sieve"
	"github.com/terracecache/terrace/tier"
)

// shares are the sizes of the stores, in percent of a trace's distinct keys.
var shares = [...]int{5, 10, 25}

// TestHitRatio replays public traces. On average over all of them and three sizes,
// SIEVE must not be behind LRU, and behind its filter it must be far ahead.
func TestHitRatio(t *testing.T) {
	all := traces(t)
	stores := beside[int, struct{}]() // filtered, always, lru
	shards := []int{1, 1, 1}
	// The shards that a store takes by itself, which it does when it is large.
	stores = append(stores, named[int, struct{}]{"sharded", newStore[int, struct{}](sieve.Filtered)})
	shards = append(shards, 0)

	hits := make([][len(shares)][]float64, len(all)) // in percent, by trace, size and store
	t.Run("traces", func(t *testing.T) {
		for i, tr := range all {
			t.Run(tr.name, func(t *testing.T) {
				t.Parallel()
				for j, share := range shares {
					for k, s := range stores {
						size := memtest.Size{Capacity: max(1, tr.distinct*share/100), Shards: shards[k]}
						hits[i][j] = append(hits[i][j], replay(t, s.newStore(size), tr))
					}
				}
			})
		}
	})

	mean := make([]float64, len(stores))
	var table strings.Builder
	row := func(name, size string, ratios []float64) {
		fmt.Fprintf(&table, "%-8s%8s", name, size)
		for _, ratio := range ratios {
			fmt.Fprintf(&table, "%10.2f", ratio)
		}
		table.WriteByte('\n')
	}
	fmt.Fprintf(&table, "%16s", "hits in %:")
	for _, s := range stores {
		fmt.Fprintf(&table, "%10s", s.name)
	}
	table.WriteByte('\n')
	for i, tr := range all {
		for j, share := range shares {
			row(tr.name, fmt.Sprint(tr.distinct*share/100), hits[i][j])
			for k, ratio := range hits[i][j] {
				mean[k] += ratio / float64(len(all)*len(shares))
			}
		}
	}
	row("mean", "", mean)
	t.Logf("%d traces\n%s", len(all), &table)

	filtered, always, lru, sharded := mean[0], mean[1], mean[2], mean[3]
	// By chance, as seeds differ, the filtered means move by a few tenths.
	if filtered < lru+5 {
		t.Errorf("filtered: %.2f %% on average, lru: %.2f %%, want 5 more than that", filtered, lru)
	}
	if always < lru {
		t.Errorf("always: %.2f %% on average, want at least lru's %.2f %%", always, lru)
	}
	if sharded < filtered-1.5 {
		t.Errorf("sharded: %.2f %% on average, want at most 1.5 less than %.2f %%", sharded, filtered)
	}
}

// replay returns how many of a trace's requests were hits, in percent.
func replay(t *testing.T, s memtest.Store[int, struct{}], tr trace) float64 {
	ctx := context.Background()
	entry := tier.NewEntry(struct{}{}, tier.Meta{UsableUntil: tier.Never})
	hits := 0
	for _, key := range tr.keys {
		switch e, err := s.Get(ctx, key); {
		case err != nil:
			t.Fatal(err)
		case e != nil:
			hits++
		default:
			if err := s.Set(ctx, key, entry, tier.Forever); err != nil {
				t.Fatal(err)
			}
		}
	}
	return 100 * float64(hits) / float64(len(tr.keys))
}
