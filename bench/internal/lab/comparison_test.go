package lab_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/bench/internal/lab"
)

func TestComparisonOverSeeds(t *testing.T) {
	begun := time.Now()
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			c := lab.Comparison{
				Strategies: lab.Strategies(lab.Lives{TTL: 2 * time.Second, Stale: time.Second}, 4),
				Arrivals:   lab.Arrivals{Kind: lab.Even, Rate: 100, Length: 20 * time.Second, Seed: seed},
				Origin:     lab.OriginOptions{Latency: 100 * time.Millisecond, Capacity: 20},
				SlowAbove:  50 * time.Millisecond,
				Seed:       seed,
			}
			r, err := c.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range r.Outcomes {
				fmt.Println(seed, o.Strategy.Name, o.Origin.Calls, o.Origin.Peak, o.Reads.Slow, o.Reads.Oldest, o.Reads.Failed, o.Reads.Requests)
			}
		})
	}
	fmt.Println(time.Since(begun))
}
