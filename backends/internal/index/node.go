package index

// Node is what a table holds: a key with what the store keeps for it, in one object. Only
// what is atomic in the item, or what no reader looks at, may change once the node can be
// found.
type Node[K comparable, X any] struct {
	Key  K
	Item X

	prev, next *Node[K, X] // in the queue that it is in; prev is newer
}

// Newer returns the one that came into the queue next, or nil.
func (n *Node[K, X]) Newer() *Node[K, X] { return n.prev }

// Older returns the one that came into the queue before, or nil.
func (n *Node[K, X]) Older() *Node[K, X] { return n.next }
