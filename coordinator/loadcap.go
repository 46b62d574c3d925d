package coordinator

import (
	"context"
	"fmt"
	"math"

	"github.com/terracecache/terrace/tier"
)

// loadPlace is what a loader occupies of Limits.Loads while it runs (L7).
type loadPlace struct{ gate *gate }

func (p *loadPlace) leave() {
	if p.gate != nil {
		p.gate.leave()
		p.gate = nil
	}
}

// mostLoads returns the bound as a gate takes it.
func (l Limits) mostLoads() int {
	if l.Loads == 0 {
		return math.MaxInt
	}
	return l.Loads
}

// enterLoads gets the flight a place to call its loader in. While there is none it waits,
// as long as a load may take, unless there is a stale value to serve instead. It lands
// the flight where it returns false.
//
// A load that another loader of this cache waits for needs no place: that one has one,
// and to wait for another could be to wait for itself.
func (c *Cache[K, V]) enterLoads(f *flight[K, V]) (p loadPlace, ok bool) {
	if n := f.node.Load(); n != nil && n.parent != nil {
		return p, true
	}
	if c.loads.tryEnter() {
		return loadPlace{&c.loads}, true
	}
	c.counts.loadWaits.Add(1)
	s := c.settings.Load()
	if reserve := f.finding.reserve; f.refreshing == nil && s.servesOnError(reserve, tier.Now()) {
		c.finish(f, f.finding.asReserve())
		return p, false
	}
	ctx, cancel := context.WithTimeout(&f.work, s.limits.LoadTimeout)
	defer cancel()
	err := c.loads.enter(ctx)
	switch {
	case err == nil:
		return loadPlace{&c.loads}, true
	case f.work.Err() != nil:
		err = ErrClosed
	default:
		err = fmt.Errorf("%w (%d loads): waiting for a turn to load: %w", ErrSaturated, s.limits.Loads, err)
	}
	c.finish(f, c.loadFailed(f, err))
	return p, false
}
