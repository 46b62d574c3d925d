package gather

import (
	"context"

	"github.com/terracecache/terrace/backends/internal/gate"
)

// beginAlone reports whether a read is alone that comes now, and counts it as a round trip.
func (g *Gatherer[V]) beginAlone() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flying > 0 || g.open != nil || g.throng >= crowd || g.closed {
		return false
	}
	g.flying++
	g.goes(1)
	return true
}

// goAlone makes the round trip of a read that beginAlone has counted.
func (g *Gatherer[V]) goAlone(ctx context.Context, key string) (a Answer[V], ok bool) {
	defer func() {
		if p := recover(); p != nil {
			a, ok = Answer[V]{Err: gate.Panicked(p)}, true
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.hasGone(1)
		g.goOn()
	}()
	return g.alone(ctx, key)
}

// goes counts the keys of a round trip that begins. It is called with the mutex.
func (g *Gatherer[V]) goes(keys int) {
	g.recent = keys
	g.aboard += keys
	g.throng = max(g.aboard, g.throng-(g.throng-g.aboard+7)/8) // what is over is forgotten slowly
}

// hasGone counts a round trip off that is over, or that nobody waits for any more. It is called
// with the mutex.
func (g *Gatherer[V]) hasGone(keys int) {
	g.flying--
	g.aboard -= keys
}
