package index

// Node is what a table holds: a key with what the store keeps for it, in one object. Only
// what is atomic in the item, or what no reader looks at, may change once the node can be
// found.
type Node[K comparable, X any] struct {
	Key  K
	Item X
}
