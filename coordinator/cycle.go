package coordinator

import (
	"context"
	"slices"
	"sync"
)

// node stands for a flight in the graph of loaders that wait for loads. Only a load
// that is asked for from within a loader makes an edge, so the one lock of the graph
// is of no weight to others. The graph spans all caches of the process.
type node struct {
	owner  nodeOwner
	parent *node // the flight whose loader started this one and waits for it

	// ride lets one load at a time that the flight's loader waits for go on without a
	// place among the flights.
	ride gate

	waits []*node // guarded by cycles
}

type nodeOwner interface {
	// describe names the flight: "cache: key".
	describe() string
}

var cycles sync.Mutex

// nodeKey is where a loader's context carries its flight's node.
type nodeKey struct{}

// nodeOf returns the node of the flight whose loader runs with the context, or nil.
func nodeOf(ctx context.Context) *node {
	n, _ := ctx.Value(nodeKey{}).(*node)
	return n
}

// await notes that n's loader waits for the target's flight, or returns a
// [CycleError] when that one waits, directly or through others, for n (L6).
func (n *node) await(target *node) error {
	path := n.enter(target)
	if path == nil {
		return nil
	}
	names := []string{n.owner.describe()}
	for _, p := range path {
		names = append(names, p.owner.describe())
	}
	return &CycleError{Path: names}
}

// enter makes the edge, or returns the path back where there is one.
func (n *node) enter(target *node) []*node {
	cycles.Lock()
	defer cycles.Unlock()
	path := target.pathTo(n, make(map[*node]bool))
	if path == nil {
		n.waits = append(n.waits, target)
	}
	return path
}

// awaited ends what await began.
func (n *node) awaited(target *node) {
	cycles.Lock()
	defer cycles.Unlock()
	if i := slices.Index(n.waits, target); i >= 0 {
		n.waits = slices.Delete(n.waits, i, i+1)
	}
}

// pathTo returns the nodes from n to the target along the waits, both included, or
// nil. The lock is held.
func (n *node) pathTo(target *node, seen map[*node]bool) []*node {
	if n == target {
		return []*node{n}
	}
	if seen[n] {
		return nil
	}
	seen[n] = true
	for _, next := range n.waits {
		if path := next.pathTo(target, seen); path != nil {
			return append([]*node{n}, path...)
		}
	}
	return nil
}
