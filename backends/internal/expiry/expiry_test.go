package expiry_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/backends/internal/expiry"
	"github.com/terracecache/terrace/tier"
)

// Whatever was asked before, an entry's life is cut at now+ttl where that is sooner
// than its own end, and nowhere else.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		var c expiry.Clock
		for range 100_000 {
			if rnd.IntN(3) == 0 {
				time.Sleep(time.Duration(rnd.IntN(10)))
			}
			ttl := time.Duration(1 + rnd.IntN(50))
			usable := tier.Now().Add(time.Duration(rnd.IntN(60)))
			want := min(usable, tier.Now().Add(ttl))
			if got := min(usable, c.Until(usable, ttl)); got != want {
				t.Fatalf("at %v, ttl %v, usable until %v: cut at %v, want %v", tier.Now(), ttl, usable, got, want)
			}
		}
		if got := c.Until(tier.Never, tier.Forever); got != tier.Never {
			t.Errorf("for ever: cut at %v, want never", got)
		}
	})
}
