package index

// Node is what a table holds: a key with what the store keeps for it, in one object. A
// store that replaces the item makes another node; only parts of the item that are
// atomic, or that no reader looks at, may change once the node can be found.
type Node[K comparable, X any] struct {
	Key  K
	Item X
	Hash uint64 // of Key
}
