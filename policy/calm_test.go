package policy_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/terracecache/terrace/policy"
)

// Beyond what Calm says nothing but Serve is ever decided, also by the most extreme
// draw.
func TestCalmIsKept(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	farthest := func() float64 { return 1 - 0x1p-53 }
	for _, s := range []policy.Strategy{
		policy.Fixed{}, policy.StaleWhileRevalidate{}, policy.XFetch{},
		policy.XFetch{Rand: farthest}, policy.XFetch{Beta: 2, Rand: farthest}, policy.XFetch{Beta: 0.001, Rand: farthest},
	} {
		margin, loads := s.(policy.Calm).Calm()
		if margin < 0 || loads < 0 {
			t.Errorf("%s: Calm = %v, %v; want neither negative", policy.NameOf(s), margin, loads)
		}
		for range 10_000 {
			load := time.Duration(rnd.Int64N(int64(time.Minute)))
			calm := margin + time.Duration(loads*float64(load))
			r := policy.Reading{FreshFor: calm + 1 + time.Duration(rnd.Int64N(1000)), LoadTime: load}
			r.StaleFor = r.FreshFor
			if got := s.Decide(r); got != policy.Serve {
				t.Fatalf("%s: Decide(%+v) = %v, want serve", policy.NameOf(s), r, got)
			}
		}
	}
}
