package optimal

import (
	"context"
	"math"

	"github.com/terracecache/terrace/bench/internal/capture"
	"github.com/terracecache/terrace/bench/internal/trace"
)

// Volume returns a bound of the hits of any cache of so many bytes. What is best is NP-hard
// to find there. A hit takes its object's bytes for as long as the key was not asked for;
// all together cannot take more than the capacity for as long as the trace lasts; so the
// bound is as many hits as fit into that, the smallest first (the lower bound of misses
// PFOO-L of Berger, Beckmann, Harchol-Balter, "Practical Bounds on Optimal Caching with
// Variable Object Sizes", SIGMETRICS 2018). Hits are sorted into classes of 1/64, and at
// the border the bound is rounded up. Of the tally only hits are a bound, and all that is
// not about hits is as counted.
func Volume(ctx context.Context, rec *capture.Trace, capacity int64, tick func(int64)) (capture.Tally, error) {
	var tally capture.Tally
	var classes [classCount]class
	err := rec.Each(ctx, func(b *capture.Batch) error {
		for i := range b.Requests {
			q := &b.Requests[i]
			tally.Count(q, false)
			size, next := max(1, q.Size), b.Next[i]
			if next >= capture.Gone || q.Op == trace.Delete || size > capacity {
				continue
			}
			volume := float64(size) * float64(next-b.First-int64(i))
			c := &classes[classOf(volume)]
			c.hits++
			c.volume += volume
		}
		tick(b.First + int64(len(b.Requests)))
		return nil
	})
	left := float64(capacity) * float64(tally.Requests)
	for i := range classes {
		c := &classes[i]
		if c.hits == 0 {
			continue
		}
		if c.volume <= left {
			tally.Hits += c.hits
			left -= c.volume
			continue
		}
		tally.Hits += min(c.hits, int64(left/least(i))+1) // a sum of floats may be a little off
		break
	}
	return tally, err
}

// class is hits of about the same volume.
type class struct {
	hits   int64
	volume float64 // together
}

// Classes are told by a volume's exponent, which a size below 2^49 and less than 2^62
// requests keep below 2^7, and the first 6 bits behind its leading one.
const (
	classBits  = 6
	classShift = 52 - classBits
	classCount = 1 << (7 + classBits)
)

var firstClass = int(math.Float64bits(1) >> classShift)

func classOf(volume float64) int { return int(math.Float64bits(volume)>>classShift) - firstClass }

// least is the smallest volume of the class.
func least(class int) float64 {
	return math.Float64frombits(uint64(class+firstClass) << classShift)
}
