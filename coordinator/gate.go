package coordinator

import (
	"context"
	"sync"
)

// gate lets a bounded number through at once; more wait in line.
type gate struct {
	max int

	mu   sync.Mutex
	used int
	line line
}

func (g *gate) tryEnter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.used >= g.max {
		return false
	}
	g.used++
	return true
}

// enter waits for a place as long as the context lasts.
func (g *gate) enter(ctx context.Context) error {
	g.mu.Lock()
	if g.used >= g.max {
		return g.line.wait(ctx, &g.mu, g.pass)
	}
	g.used++
	g.mu.Unlock()
	return nil
}

// resize changes how many may be inside. Those who are too many by then stay.
func (g *gate) resize(most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.max = most
	for g.used < g.max && g.line.next() {
		g.used++
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass()
}

func (g *gate) pass() {
	if g.used > g.max || !g.line.next() {
		g.used--
	}
}

func (g *gate) inside() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used
}
