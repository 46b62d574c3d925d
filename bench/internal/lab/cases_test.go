package lab_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/bench/internal/lab"
)

func TestCases(t *testing.T) {
	for seed := range uint64(5) {
		for _, c := range lab.Cases(50 * time.Millisecond) {
			synctest.Test(t, func(t *testing.T) {
				o, err := c.Run(t.Context(), seed)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Println(c.Name, c.Published, o.Origin.Calls, o.Origin.Peak, o.Reads.Failed, o.Reads.Requests, o.Wall, o.Reads.P50, o.Reads.P99)
			})
		}
	}
}
